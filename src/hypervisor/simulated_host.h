// A made-up machine host: what would be there after our process died. Drivers (SimulatedDriver)
// come and go, several may look at one host at once, and each effect on it is atomic.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/threads.h"
#include "hypervisor/fault_plan.h"
#include "model/host.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

struct SimulatedDomain {
  model::VmId id;
  std::string name;
  model::Observed power = model::Observed::kStopped;
  std::optional<model::Label> label;  // Of whatever ledger; absent for a stranger's.
  std::string mac;
  int cpus = 0;
  int memory_mib = 0;
  std::string network;
  std::string kernel_path;
  std::vector<std::string> volumes;      // Without which it does not start.
  std::vector<model::Forward> forwards;  // Whose host ports it has while it runs.
  std::vector<std::string> addresses;    // That its host knows while it runs.
  std::string console;
  std::int64_t starts = 0;  // How often it went from stopped to running.
  model::StopCause stopped_by = model::StopCause::kNone;

  bool operator==(const SimulatedDomain&) const = default;
};

struct SimulatedOptions {
  // Empty: in memory. Otherwise every change is on disk before its call returns, and one host at a
  // time has the directory.
  std::string directory;
  model::Resources capacity{
      .vms = 1'000'000, .cpus = 1'000'000, .memory_mib = 1'000'000'000, .disk_gib = 1'000'000'000};
};

// Thread-safe.
class SimulatedHost {
 public:
  // Reads what an earlier host left in the directory. kInternal: it cannot be read.
  static Result<std::shared_ptr<SimulatedHost>> Open(SimulatedOptions options, Clock& clock,
                                                     Threads& threads);
  SimulatedHost(SimulatedOptions options, Clock& clock, Threads& threads);

  const SimulatedOptions& Options() const { return options_; }

  // Answers whether it wrote the marker; kConflict as Hypervisor::Connect says.
  Result<bool> CheckMarker(const model::HostMarker& marker, ports::MarkerPolicy policy);

  std::optional<model::HostMarker> Marker() const;

  std::optional<SimulatedDomain> Find(const model::VmId& id) const;
  std::vector<SimulatedDomain> Domains() const;
  // As they were `ago` before now, as far back as limits::kSimulatedHistory changes go.
  std::vector<SimulatedDomain> DomainsBefore(Milliseconds ago) const;
  std::vector<std::string> Volumes() const;
  bool HasVolume(const std::string& name) const;
  // Of `ports`, those that another domain that runs has, or a stranger's program.
  std::vector<model::HostPort> PortsInUse(const std::vector<model::HostPort>& ports,
                                          const model::VmId& but_for) const;

  // Runs `change` on the domain of that id, absent or not, while everything else stands still, and
  // keeps what it leaves: a domain, or none. An error of `change` is answered and keeps nothing, as
  // does kConflict when the new name is another domain's. kInternal: it could not be stored.
  // `change` must not call this host.
  using Change = std::function<Status(std::optional<SimulatedDomain>& domain)>;
  Status ChangeDomain(SimulatedCall call, const model::VmId& id, const Change& change);
  // Twice is once. Asks `permit` first, with the domain that the volume belongs to.
  using Permit = std::function<Status(const std::optional<SimulatedDomain>& domain)>;
  Status AddVolume(SimulatedCall call, const model::VmId& id, const std::string& name,
                   const Permit& permit);
  Status RemoveVolume(SimulatedCall call, const model::VmId& id, const std::string& name,
                      const Permit& permit);

  // For tests and checkers. Plant replaces a domain of its id and counts as no effect; PowerOffAll
  // is a restart of the host (what runs is off, by kHost); Effects counts how often a call really
  // changed something.
  void Plant(const SimulatedDomain& domain);
  void PowerOffAll();
  // A stranger's program begins to listen there, or ends.
  void TakePort(const model::HostPort& port);
  void FreePort(const model::HostPort& port);
  std::int64_t Effects(SimulatedCall call) const;

 private:
  struct Past {
    Instant at;  // When it ended.
    model::VmId id;
    std::optional<SimulatedDomain> domain;
  };

  Status Load();
  std::optional<SimulatedDomain> FindLocked(const model::VmId& id) const REQUIRES(*monitor_);
  Status Put(const model::VmId& id, std::optional<SimulatedDomain> domain) REQUIRES(*monitor_);
  std::string DomainFile(const model::VmId& id) const;

  const SimulatedOptions options_;
  Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  std::optional<model::HostMarker> marker_ GUARDED_BY(*monitor_);
  std::map<model::VmId, SimulatedDomain> domains_ GUARDED_BY(*monitor_);
  std::map<std::string, model::VmId> names_ GUARDED_BY(*monitor_);
  std::set<std::string> volumes_ GUARDED_BY(*monitor_);
  std::set<model::HostPort> taken_ports_ GUARDED_BY(*monitor_);
  std::deque<Past> history_ GUARDED_BY(*monitor_);
  std::map<SimulatedCall, std::int64_t> effects_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
