#include "sim/operator.h"

#include "sim/stage.h"

namespace vmonce::sim {

void Operator::Run() {
  while (!stage_.faults.HasStopped()) {
    const Instant next =
        stage_.scheduler.now() + Milliseconds(stage_.work_chance.Between(2'000, 15'000));
    stage_.scheduler.Park(next);
    if (stage_.faults.HasStopped()) break;
    SetClocks();
    RebootHosts();
    DeclareDead();
    RemoveByHand();
    Migrate();
    Repoint();
  }
  is_done_ = true;
}

void Operator::SetClocks() {
  for (const auto& replica : replicas_) {
    if (!stage_.Happens(FaultKind::kClockJump)) continue;
    const auto skew = Milliseconds(stage_.work_chance.Between(-600'000, 600'000));
    stage_.Tell("operator", "sets the clock of {} by {} ms", replica->name(), skew.count());
    replica->SetSkew(skew);
  }
}

void Operator::RebootHosts() {
  for (const Machine& machine : stage_.machines) {
    if (!stage_.Happens(FaultKind::kHostReboot)) continue;
    stage_.Tell("operator", "reboots {}", machine.id.value);
    stage_.oracle.SetHand(Oracle::Hand::kWeather);
    machine.host->PowerOffAll();
    stage_.oracle.SetHand(Oracle::Hand::kOurs);
  }
}

void Operator::DeclareDead() {
  for (Machine& machine : stage_.machines) {
    if (!stage_.Happens(FaultKind::kHostDead)) continue;
    machine.down_until =
        stage_.scheduler.now() + Milliseconds(stage_.work_chance.Between(5'000, 120'000));
    stage_.Tell("operator", "declares {} dead", machine.id.value);
    stage_.oracle.HostWasGivenUp(machine.id);
    Declare(machine.id, model::HostState::kDead);
  }
}

// As the service's own route would, whatever a replica knows of it by then.
void Operator::Declare(const model::HostId& host, model::HostState state) {
  (void)stage_.ledger->SetHostState(host, state);
}

void Operator::SetRight() {
  for (const Machine& machine : stage_.machines) {
    const auto hosts = stage_.ledger->Hosts();
    if (!hosts) continue;
    for (const model::Host& row : *hosts) {
      if (row.id != machine.id || row.state != model::HostState::kDead) continue;
      stage_.Tell("operator", "{} is back", machine.id.value);
      Declare(machine.id, model::HostState::kActive);
    }
  }
}

void Operator::RemoveByHand() {
  for (const Machine& machine : stage_.machines) {
    for (const auto& domain : machine.host->Domains()) {
      if (!IsOurs(domain) || !stage_.Happens(FaultKind::kRemovedByHand)) continue;
      stage_.Tell("operator", "removes {} from {} by hand", domain.name, machine.id.value);
      stage_.oracle.SetHand(Oracle::Hand::kMeddler);
      machine.host->Remove(domain.id);
      stage_.oracle.SetHand(Oracle::Hand::kOurs);
      return;
    }
  }
}

bool Operator::IsOurs(const hypervisor::SimulatedDomain& domain) const {
  const auto row = stage_.ledger->GetVm(domain.id);
  return row && row->has_value();
}

void Operator::Migrate() {
  if (stage_.machines.size() < 2) return;
  for (std::size_t i = 0; i < stage_.machines.size(); ++i) {
    const Machine& from = stage_.machines[i];
    const Machine& to = stage_.machines[(i + 1) % stage_.machines.size()];
    if (from.host == to.host) continue;
    for (const auto& domain : from.host->Domains()) {
      if (!IsOurs(domain) || !stage_.Happens(FaultKind::kMigrated)) continue;
      stage_.Tell("operator", "moves {} from {} to {}", domain.name, from.id.value, to.id.value);
      stage_.oracle.SetHand(Oracle::Hand::kMeddler);
      to.host->Plant(domain);
      from.host->Remove(domain.id);
      stage_.oracle.SetHand(Oracle::Hand::kOurs);
      return;
    }
  }
}

// A mistake in the configuration, for a while: the URI of a host that was registered leads to an
// empty machine, or to another one of ours.
void Operator::Repoint() {
  for (std::size_t i = 0; i < stage_.machines.size(); ++i) {
    Machine& machine = stage_.machines[i];
    if (!MayRepoint(machine) || !stage_.Happens(FaultKind::kRepointed)) continue;
    const bool is_ours = stage_.machines.size() > 1 && stage_.work_chance.OneIn(2);
    machine.repointed = is_ours
                            ? stage_.machines[(i + 1) % stage_.machines.size()].host
                            : std::make_shared<hypervisor::SimulatedHost>(
                                  hypervisor::SimulatedOptions{}, stage_.clock, stage_.no_threads);
    stage_.Tell("operator", "lets the URI of {} lead to {}", machine.id.value,
                is_ours ? "another host's machine" : "an empty machine");
    RestartReplicas();
    const Instant end =
        stage_.scheduler.now() + Milliseconds(stage_.work_chance.Between(5'000, 60'000));
    while (stage_.scheduler.now() < end) stage_.scheduler.Park(end);
    stage_.Tell("operator", "sets the URI of {} right", machine.id.value);
    machine.repointed = nullptr;
    RestartReplicas();
    return;
  }
}

// One that was never reached is whatever its URI leads to.
bool Operator::MayRepoint(const Machine& machine) const {
  const auto shares = [&](const Machine& other) {
    return other.id != machine.id && other.host == machine.host;
  };
  if (std::ranges::any_of(stage_.machines, shares)) return false;
  const auto hosts = stage_.ledger->Hosts();
  if (!hosts) return false;
  const auto row = std::ranges::find(*hosts, machine.id, &model::Host::id);
  return row != hosts->end() && row->is_registered;
}

void Operator::RestartReplicas() {
  for (const auto& replica : replicas_) {
    if (!replica->IsUp()) continue;
    replica->Crash();
    replica->Boot();
  }
}

}  // namespace vmonce::sim
