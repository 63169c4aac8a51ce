// The hosts as this process reaches them: one hypervisor door each, whether it answers, and who it
// says it is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/threads.h"
#include "model/forward_limits.h"
#include "model/host.h"
#include "model/placement.h"
#include "model/vm.h"
#include "ports/hypervisor.h"
#include "ports/ledger.h"

namespace vmonce::workflows {

// What may be reserved on a host, as the configuration says it. What is absent is what the
// hypervisor tells, of CPUs and memory a share that is fit to be used.
struct CapacityPlan {
  std::optional<std::int64_t> vms;
  std::optional<std::int64_t> cpus;
  std::optional<std::int64_t> memory_mib;
  std::optional<std::int64_t> disk_gib;

  static CapacityPlan Of(const model::Resources& all) {
    return {all.vms, all.cpus, all.memory_mib, all.disk_gib};
  }
};

// What the configuration says of a host.
struct HostPlan {
  model::HostId id;
  std::string uri;
  CapacityPlan capacity;
  model::PortRange forward_ports{model::limits::kForwardPortsFirst,
                                 model::limits::kForwardPortsLast};
  std::string forward_address = "127.0.0.1";  // Where forwarded ports listen.
  std::vector<std::string> networks;          // Beside user-mode networking (model/network.h).
};

// What the labels on the hosts say of the ledger.
enum class LedgerAge {
  kUntold,   // Some host has not been asked yet.
  kCurrent,  // No label that was seen is ahead of the ledger.
  kBehind,   // A label is: an older copy of the ledger was restored, and keys it does not know may
             // have machines.
  kPartly,   // Some host was not read when the ledger was rebuilt, and is not declared dead: the
             // same is so of what is there.
};

struct HostStatus {
  model::HostId id;
  bool is_reachable = false;
  std::optional<ports::HostFacts> facts;  // Of the last connection.
  std::string problem;                    // Why it is not reachable.
  std::optional<Time> since;              // Since when it is, or is not; absent before any try.
  // The newest problem, also when it is over.
  std::string last_error;
  std::optional<Time> last_error_at;
};

// Thread-safe after the last Add().
class Fleet {
 public:
  Fleet(ports::Ledger& ledger, Threads& threads, Logger& logger);

  // `changed` is called when what the hosts may take is written anew, on the thread that does so.
  // Precondition: before the first Connect().
  void OnCapacityChange(std::function<void()> changed) { capacity_changed_ = std::move(changed); }

  void Add(HostPlan plan, std::unique_ptr<ports::Hypervisor> hypervisor);

  // Connects and proves the host's identity; registers it in the ledger the first time. Also what
  // finds out that a host answers again. A host whose URI shows another host's marker stays
  // unreachable (kConflict). A host that is declared dead is not contacted (kUnavailable).
  Status Connect(const model::HostId& id);

  // For a rebuild alone: proves identity and registers, and compares nothing. The status stays.
  Status ConnectUncompared(const model::HostId& id);
  // Makes the row of a host that was never reached. kNotFound: the configuration has no such host.
  Status EnsureRow(const model::HostId& id);

  // nullptr: no such host in the configuration (any more).
  ports::Hypervisor* Find(const model::HostId& id) const;
  std::vector<model::HostId> Ids() const;
  // False until the first try to connect in this process has ended. Nothing is known of such a
  // host.
  bool HasBeenTried(const model::HostId& id) const;
  std::string UriOf(const model::HostId& id) const;
  HostStatus StatusOf(const model::HostId& id) const;
  // The ledger's hosts with what is known here of their reachability.
  Result<std::vector<model::Candidate>> Candidates() const;

  // Nothing is done on a dead host. True as the ledger has it now; false as of the last Connect or
  // SetState of this process: another's declaration is known within a period of the reconciler.
  Result<bool> IsDead(const model::HostId& id) const;
  // As the last Connect read it.
  bool IsReturning(const model::HostId& id) const;
  // An operator's declaration. kNotFound: neither the ledger nor the configuration knows the host.
  Status SetState(const model::HostId& id, model::HostState state);

  // The labels there were compared with the ledger in this process, and no label anywhere is ahead:
  // before that nothing may be done on it (protocol section 11).
  bool MayAct(const model::HostId& id) const;

  // Told when every host has been tried once since the start, or one has shown a label that is
  // ahead. Before the first effect on a host its labels have been compared.
  LedgerAge Age() const;
  // The labels of every host were compared since the start, and none is ahead; dead hosts are not
  // waited for. Before that, nothing is removed because the ledger does not know it.
  bool HasComparedAll() const;

  // The host has the network of this VM, and its range the ports that it asks for by number.
  bool Offers(const model::HostId& id, const model::VmSpec& spec) const;
  // Why no host does, as a sentence's end; absent when some does.
  std::optional<std::string> WhyNotOffered(const model::VmSpec& spec) const;
  // User-mode networking and what the configuration adds; none of a host that it does not have.
  std::vector<std::string> NetworksOf(const model::HostId& id) const;
  // How ports are reserved there. kUnavailable: the configuration no longer has that host.
  Result<ports::PortPlan> PortsOf(const model::HostId& id) const;

  // Of the slowest host.
  Milliseconds SettleTime() const;

 private:
  struct Member {
    HostPlan plan;
    std::unique_ptr<ports::Hypervisor> hypervisor;
    HostStatus status;
    bool has_been_tried = false;
    bool has_compared = false;
    model::HostState state = model::HostState::kActive;
    bool is_returning = false;
  };

  // The accept sequence in the labels against the ledger's (protocol section 11). kConflict: the
  // ledger is behind.
  Status CompareSequence(const model::HostId& id, ports::Hypervisor& hypervisor,
                         bool& is_ledger_silent);
  static ports::MarkerPolicy PolicyFor(const std::optional<model::Host>& row);
  Status Register(const HostPlan& plan, const ports::HostFacts& facts, bool is_registered);
  void SetStatus(const model::HostId& id, HostStatus status);
  // The host's row, which the member then is held to.
  Result<std::optional<model::Host>> ReadRow(const model::HostId& id);

  ports::Ledger& ledger_;
  Logger& logger_;
  std::function<void()> capacity_changed_ = [] {};
  std::unique_ptr<Monitor> monitor_;
  // The map and the plans never change after the last Add(); the statuses do.
  std::map<model::HostId, Member> members_;
  bool is_behind_ GUARDED_BY(*monitor_) = false;
  // As the rows were read last; of hosts that the configuration has no more, too.
  bool has_unread_ GUARDED_BY(*monitor_) = false;
};

}  // namespace vmonce::workflows
