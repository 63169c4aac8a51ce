// What every face calls for what changes nothing. Blocks on reads of the ledger, and for the
// console on the host.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "model/problem.h"
#include "model/vm.h"
#include "ports/hypervisor.h"
#include "ports/ledger.h"
#include "service/caller.h"
#include "service/images.h"
#include "service/quotas.h"
#include "service/vm_service.h"
#include "workflows/fleet.h"

namespace vmonce::service {

template <typename T>
using Answered = std::expected<T, model::Problem>;

struct HostView {
  model::Host host;
  workflows::HostStatus status;
  std::vector<std::string> networks;  // That VMs there may be in.
};

// Thread-safe. One project never learns of another's: what is not the caller's is not found.
class Queries {
 public:
  Queries(ports::Ledger& ledger, const workflows::Fleet& fleet, const ImageCatalog& images,
          const model::RetentionPolicy& retention)
      : ledger_(ledger), fleet_(fleet), images_(images), retention_(retention) {}

  Answered<model::Vm> GetVm(const Caller& caller, const model::VmId& id) const;
  Answered<ports::PageOf<model::Vm>> ListVms(const Caller& caller, const ports::VmFilter& filter,
                                             const ports::Page& page) const;
  Answered<model::Operation> GetOperation(const Caller& caller, const model::OperationId& id) const;
  Answered<ports::PageOf<model::Operation>> ListOperations(const Caller& caller,
                                                           const ports::OperationFilter& filter,
                                                           const ports::Page& page) const;
  Answered<std::vector<model::TimelineEntry>> Timeline(const Caller& caller,
                                                       const model::OperationId& id) const;
  Answered<ports::ConsoleChunk> Console(const Caller& caller, const model::VmId& id,
                                        std::int64_t offset, std::size_t most) const;
  Answered<std::vector<HostView>> Hosts() const;
  // Those of the configuration.
  const std::vector<model::Image>& Images() const { return images_.Configured(); }
  // Why nothing may be made of it now; absent when it may.
  std::optional<std::string> ProblemOf(const model::Image& image) const {
    return images_.ProblemOf(image);
  }
  Answered<model::Resources> Usage(const Caller& caller) const;
  // What the project holds of its quota now.
  Answered<ProjectQuota> Held(const Caller& caller) const;
  // The ledger answers, and at least one host does. Anybody may ask: what is said names no host.
  Answered<void> Ready() const;

 private:
  ports::Ledger& ledger_;
  const workflows::Fleet& fleet_;
  const ImageCatalog& images_;
  const model::RetentionPolicy retention_;
};

// The problem of a ledger that does not answer: 503, nothing happened or it is not known; the same
// key is the advice.
model::Problem LedgerProblem(const Error& error);

}  // namespace vmonce::service
