// How far the files are that one host is being sent, and that no two calls send the same one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/sha256.h"
#include "base/threads.h"

namespace vmonce::hypervisor {

// Thread-safe.
class ImageUploads final {
 public:
  explicit ImageUploads(Threads& threads) : monitor_(threads.NewMonitor()) {}

  // Takes the file until it is given back: how much of it was sent over this very connection; what
  // went over an earlier one may be lost. Absent: another call has it.
  std::optional<std::int64_t> Take(const Digest& digest,
                                   const std::shared_ptr<const void>& connection);
  void GiveBack(const Digest& digest, std::int64_t sent);
  // Of a file that another call has: what that began with.
  std::int64_t SentOf(const Digest& digest) const;

 private:
  struct Upload {
    std::int64_t sent = 0;
    bool is_taken = false;
    std::weak_ptr<const void> connection;
  };

  const std::unique_ptr<Monitor> monitor_;
  std::map<Digest, Upload> uploads_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
