// What all hosts together may reserve: the figure a claim is measured against before placement
// looks at single hosts.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "base/threads.h"
#include "model/host.h"
#include "ports/ledger.h"

namespace vmonce::service {

// Thread-safe. Read again when older than `max_age`: a claim decided by a figure that old is still
// placed, or fails, by what the hosts have then.
class Capacity {
 public:
  Capacity(ports::Ledger& ledger, Clock& clock, Threads& threads, Milliseconds max_age)
      : ledger_(ledger), clock_(clock), max_age_(max_age), monitor_(threads.NewMonitor()) {}

  // Quick while the figure is young enough; blocks on the ledger otherwise.
  Result<model::Resources> Total();
  // Reads again, however old the figure is: called now and then by a thread that may block, so that
  // those that may not find it young.
  Result<model::Resources> Refresh();

 private:
  ports::Ledger& ledger_;
  Clock& clock_;
  const Milliseconds max_age_;
  std::unique_ptr<Monitor> monitor_;
  std::optional<model::Resources> total_ GUARDED_BY(*monitor_);
  Instant read_at_ GUARDED_BY(*monitor_){};
};

}  // namespace vmonce::service
