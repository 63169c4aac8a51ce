// Answers of creates that came again, as they were written: a client that sends the same bytes once
// more needs no parsing, no fingerprint and no ledger. Whether an answer still is right is not
// known here (VmService::Repeat tells); who asks was authorised before anything is looked for.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/sha256.h"
#include "base/threads.h"
#include "http/message.h"
#include "service/vm_service.h"

namespace vmonce::rest {

struct RepeatedAnswer {
  http::Response response;
  service::Reading reading;
};

// Thread-safe. Bounded by what the answers hold: those used longest ago go first.
class Repeats {
 public:
  Repeats(Threads& threads, std::size_t most_bytes)
      : most_bytes_(most_bytes), monitor_(threads.NewMonitor()) {}

  // Null when there is none.
  std::shared_ptr<const RepeatedAnswer> Find(const Digest& request);
  void Put(const Digest& request, RepeatedAnswer answer);

 private:
  // Shared with those that are writing it just now.
  using Row = std::pair<Digest, std::shared_ptr<const RepeatedAnswer>>;
  struct HashOfDigest {
    std::size_t operator()(const Digest& digest) const noexcept;
  };
  using Rows = std::list<Row>;

  const std::size_t most_bytes_;
  const std::unique_ptr<Monitor> monitor_;
  Rows rows_ GUARDED_BY(*monitor_);  // The last used one first.
  std::unordered_map<Digest, Rows::iterator, HashOfDigest> index_ GUARDED_BY(*monitor_);
  std::size_t bytes_ GUARDED_BY(*monitor_) = 0;
};

// Of everything that decides the answer of a create beside what the ledger holds: who asks, the
// bytes of target and body, and the lines of the headers that mean something. The body may hold
// secrets, so that a digest of it is kept and nothing of itself. Precondition: Gate::Admit() let
// the request through.
Digest DigestOfCreate(const http::Request& request);

}  // namespace vmonce::rest
