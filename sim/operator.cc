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

}  // namespace vmonce::sim
