// The door through which an operator takes a key off a record, so that it can be used anew.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::ports {

struct ReleasedKey {
  std::vector<model::VmId> vms;  // What had been made with it.
};

class KeyReleases {
 public:
  virtual ~KeyReleases() = default;

  // Blocks; one transaction, with the errors of ports/ledger.h. The record or tombstone stays,
  // known by its VMs alone, until it goes in its time; a record's timeline tells `by` whom.
  // kNotFound: nothing in the project has the key. kConflict, with the reason for people: the work
  // is not finished, or something that it made is still there.
  virtual Result<ReleasedKey> ReleaseKey(const model::ProjectId& project, const Digest& key_hash,
                                         const std::string& by) = 0;
};

}  // namespace vmonce::ports
