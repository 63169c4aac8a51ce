// What an operator does to keys.
#pragma once

#include <vector>

#include "base/log.h"
#include "model/idempotency.h"
#include "model/vm.h"
#include "ports/ledger_keys.h"
#include "service/caller.h"
#include "service/queries.h"

namespace vmonce::service {

// Thread-safe. What it is given outlives it.
class KeyAdmin {
 public:
  KeyAdmin(ports::KeyReleases& keys, Logger& logger) : keys_(keys), logger_(logger) {}

  struct Release {
    bool was_known = false;        // Something in the project had the key.
    std::vector<model::VmId> vms;  // What had been made with it.
  };
  // Takes the key off what was made with it, in the caller's project, once all of that is gone:
  // another request may use it then, and makes something new. Repeating it changes nothing. Blocks
  // on the ledger. The log, and the record's timeline, tell who asked. key_in_use.
  Answered<Release> ReleaseKey(const Caller& caller, const model::IdempotencyKey& key);

 private:
  ports::KeyReleases& keys_;
  Logger& logger_;
};

}  // namespace vmonce::service
