// A made-up machine host: what would be there after our process died. Drivers (SimulatedDriver) come
// and go, several may look at one host at once, and each effect on it is atomic.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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
  std::string console;
  std::int64_t starts = 0;  // How often it went from stopped to running.
};

struct SimulatedOptions {
  // Empty: in memory. Otherwise every change is on disk before its call returns.
  std::string directory;
  model::Resources capacity{.vms = 1'000'000,
                            .cpus = 1'000'000,
                            .memory_mib = 1'000'000'000,
                            .disk_gib = 1'000'000'000};
};

// Thread-safe.
class SimulatedHost {
 public:
  // Reads what an earlier host left in the directory. kInternal: it cannot be read.
  static Result<std::shared_ptr<SimulatedHost>> Open(SimulatedOptions options, Clock& clock,
                                                     Threads& threads);
  ~SimulatedHost();

  const SimulatedOptions& Options() const { return options_; }

  // The hypervisor's own calls. A Status other than ok means that nothing changed.
  Result<bool> CheckMarker(const model::HostMarker& marker, ports::MarkerPolicy policy);
  std::optional<SimulatedDomain> Find(const model::VmId& id) const;
  std::optional<SimulatedDomain> FindByName(const std::string& name) const;
  std::vector<SimulatedDomain> Domains() const;
  // As they were `ago` before now.
  std::vector<SimulatedDomain> DomainsBefore(Milliseconds ago) const;
  std::vector<std::string> Volumes() const;

  // Runs `change` on the domain of that id, absent or not, with everything else standing still, and
  // keeps what it leaves: a domain, or none. A failed change keeps nothing.
  using Change = std::function<Status(std::optional<SimulatedDomain>& domain)>;
  Status ChangeDomain(const model::VmId& id, const Change& change);
  Status AddVolume(const std::string& name);  // Keeps one that is there.
  Status RemoveVolume(const std::string& name);

  // For tests and checkers.
  void PlantStranger(const SimulatedDomain& domain);  // Replaces one of its id.
  void PowerOffAll();                                 // The host restarts.
  // How many effects of this kind took place (a repetition that changed nothing is none).
  std::int64_t Effects(SimulatedCall call) const;
  void CountEffect(SimulatedCall call);

 private:
  SimulatedHost(SimulatedOptions options, Clock& clock, Threads& threads);
  Status Load();
  Status Save(const model::VmId& id, const std::optional<SimulatedDomain>& domain);
  void Remember() REQUIRES(*monitor_);

  struct Snapshot {
    Instant at;
    std::vector<SimulatedDomain> domains;
  };

  const SimulatedOptions options_;
  Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  std::optional<model::HostMarker> marker_ GUARDED_BY(*monitor_);
  std::map<model::VmId, SimulatedDomain> domains_ GUARDED_BY(*monitor_);
  std::map<std::string, bool> volumes_ GUARDED_BY(*monitor_);
  std::map<SimulatedCall, std::int64_t> effects_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
