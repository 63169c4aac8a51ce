// Answers of creates that came again, as they were written: a client that sends the same bytes once
// more needs no parsing, no fingerprint and no ledger. Whether an answer still is right is not
// known here (VmService::Repeat tells); who asks was authorised before anything is looked for.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/sha256.h"
#include "base/threads.h"
#include "http/response_writer.h"
#include "service/vm_service.h"

namespace vmonce::rest {

struct RepeatedAnswer {
  http::WrittenResponse response;
  service::Reading reading;
};

// Thread-safe. Bounded by what the answers hold: the oldest goes first that was not used since it
// was put in or last spared.
class Repeats {
 public:
  Repeats(Threads& threads, std::size_t most_bytes)
      : most_bytes_(most_bytes), monitor_(threads.NewMonitor()) {}

  // Null when there is none.
  std::shared_ptr<const RepeatedAnswer> Find(const Digest& request);
  void Put(const Digest& request, RepeatedAnswer answer);

 private:
  struct Row {
    // Shared with those that are sending it just now.
    std::shared_ptr<const RepeatedAnswer> answer;
    bool is_used = false;
  };
  struct HashOfDigest {
    std::size_t operator()(const Digest& digest) const noexcept;
  };

  void MakeRoom() REQUIRES(*monitor_);

  const std::size_t most_bytes_;
  const std::unique_ptr<Monitor> monitor_;
  std::unordered_map<Digest, Row, HashOfDigest> rows_ GUARDED_BY(*monitor_);
  // Each row once, the next to go first. A use only marks its row: moving it would touch others.
  std::deque<Digest> order_ GUARDED_BY(*monitor_);
  std::size_t bytes_ GUARDED_BY(*monitor_) = 0;
};

// Of everything that decides the answer of a create beside what the ledger holds: who asks, the
// bytes of target and body, and the lines of the headers that mean something. The body may hold
// secrets, so that a digest of it is kept and nothing of itself. Precondition: Gate::Admit() let
// the request through.
Digest DigestOfCreate(const http::Request& request);

}  // namespace vmonce::rest
