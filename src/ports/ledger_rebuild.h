// The door through which a ledger is written anew from what the hosts hold (protocol section 11).
// For `vmonce rebuild` alone, while nobody serves the ledger. Calls block; each is one transaction,
// with the errors of ports/ledger.h, and may be repeated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::ports {

// Rows as they are to be. Those that are there already are replaced, reservations with them; of an
// operation that is there, what was fixed at its acceptance stays. Neither quotas nor capacities
// are asked: what is there is there.
struct RebuiltOperation {
  model::Operation operation;
  std::vector<model::Vm> vms;
  std::string detail;  // For the timeline.
};

class LedgerRebuild {
 public:
  virtual ~LedgerRebuild() = default;

  // Every operation that has not ended, of all projects, in the order of acceptance.
  virtual Result<std::vector<model::Operation>> Unfinished() = 0;

  // Answers what could not be written as asked, a sentence each: a name that another VM has (the VM
  // gets one made of its id), a key that another record has (the operation is written without it),
  // a host port that is another VM's (the VM is written without forwards), a sequence number that
  // is another operation's (it gets a new one). Precondition: the VMs' hosts have rows.
  virtual Result<std::vector<std::string>> Rewrite(const RebuiltOperation& rebuilt) = 0;

  // The next accept sequence number is above `newest`.
  virtual Status RaiseSequence(std::int64_t newest) = 0;

  // Whether machines of the host may be missing in the ledger. kNotFound: no such host.
  virtual Status SetUnread(const model::HostId& host, bool is_unread) = 0;
};

}  // namespace vmonce::ports
