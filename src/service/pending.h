// One request on its way through the service. Private to this folder.
#pragma once

#include "service/vm_service.h"

namespace vmonce::service {

struct VmService::Pending {
  Asked asked;
  std::optional<Digest> key_hash;
  Digest fingerprint{};
  // Of a create that is claimed, or whose key was first used through another face.
  std::string intent;
  Instant answer_by{};  // When waiting ends.
  // Before the record was read; absent when it was not read for this request alone.
  std::optional<ports::Moment> read_since;
  Done done;

  bool MayWait(Clock& clock) const { return clock.Monotonic() < answer_by; }
};

// The rows an operation is about, live and by index.
Result<std::vector<model::Vm>> VmsOfOperation(ports::Ledger& ledger,
                                              const model::Operation& operation);

// Problems of the gate.
model::Problem ProblemOf(const ports::Declined& declined);
model::Problem StoredProblem(const model::Operation& operation);
model::Problem ExpiredProblem(const model::Tombstone& tombstone);
model::Problem OverloadedProblem();
model::Problem FirstSentTooFar(Time first_sent, Time now);
model::Problem ImageNotFound(const std::string& name);
// `why` is the middle of a sentence.
model::Problem NotOffered(const std::string& why);

}  // namespace vmonce::service
