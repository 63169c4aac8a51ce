#include "ledger/reservation.h"

#include <fmt/format.h>

#include "base/check.h"
#include "ledger/forwards.h"

namespace vmonce::ledger {
namespace {

using model::Resources;

// Names the first amount that does not fit.
std::string Describe(const Resources& used, const Resources& demand, const Resources& limit) {
  const auto tell = [](std::string_view what, std::int64_t has, std::int64_t asks,
                       std::int64_t most) {
    return fmt::format("{}: {} of {} used, {} asked", what, has, most, asks);
  };
  if (used.vms + demand.vms > limit.vms) return tell("vms", used.vms, demand.vms, limit.vms);
  if (used.cpus + demand.cpus > limit.cpus) return tell("cpus", used.cpus, demand.cpus, limit.cpus);
  if (used.memory_mib + demand.memory_mib > limit.memory_mib) {
    return tell("memory_mib", used.memory_mib, demand.memory_mib, limit.memory_mib);
  }
  return tell("disk_gib", used.disk_gib, demand.disk_gib, limit.disk_gib);
}

ports::Declined Decline(ports::DeclineReason reason, std::string detail) {
  ports::Declined declined;
  declined.reason = reason;
  declined.detail = std::move(detail);
  return declined;
}

void AddToHost(Tx& tx, const model::HostId& host, const Resources& demand) {
  tx.db.Run(
      "UPDATE hosts SET reserved_vms = reserved_vms + ?2, reserved_cpus = reserved_cpus + ?3, "
      "reserved_memory_mib = reserved_memory_mib + ?4, reserved_disk_gib = reserved_disk_gib + ?5 "
      "WHERE id = ?1",
      host, demand);
}

void TakeFromHost(Tx& tx, const model::HostId& host, const Resources& demand) {
  AddToHost(tx, host, Resources{} - demand);
}

bool HasRoom(Tx& tx, const model::HostId& host, const Resources& demand) {
  Query query = tx.db.Prepare(
      "SELECT reserved_vms, reserved_cpus, reserved_memory_mib, reserved_disk_gib, capacity_vms, "
      "capacity_cpus, capacity_memory_mib, capacity_disk_gib FROM hosts "
      "WHERE id = ?1 AND state = 'active' AND is_returning = 0");
  if (!query.Bind(host).Next()) return false;
  const Resources reserved = query.Amounts();
  const Resources capacity = query.Amounts();
  return (reserved + demand).FitsIn(capacity);
}

bool IsDead(Tx& tx, const model::HostId& host) {
  Query query = tx.db.Prepare("SELECT 1 FROM hosts WHERE id = ?1 AND state = 'dead'");
  return query.Bind(host).Next();
}

}  // namespace

std::optional<ports::Declined> WhyNotReserve(Tx& tx, const ReservationRequest& request) {
  for (const std::string& name : request.names) {
    if (const auto holder = NameHolder(tx, request.project, name)) {
      auto declined = Decline(ports::DeclineReason::kNameTaken,
                              fmt::format("the name {} is in use in this project", name));
      declined.other_vm = holder;
      return declined;
    }
  }
  const Resources& demand = request.demand;
  const Resources& used = tx.counters.UsedBy(request.project);
  if (!(used + demand).FitsIn(request.quota)) {
    return Decline(ports::DeclineReason::kQuotaExceeded, Describe(used, demand, request.quota));
  }
  const Resources& used_by_all = tx.counters.UsedByAll();
  if (!(used_by_all + demand).FitsIn(request.capacity)) {
    return Decline(ports::DeclineReason::kNoCapacity,
                   Describe(used_by_all, demand, request.capacity));
  }
  return std::nullopt;
}

std::optional<model::VmId> NameHolder(Tx& tx, const model::ProjectId& project,
                                      const std::string& name) {
  Query query = tx.db.Prepare(
      "SELECT id FROM vms WHERE project = ?1 AND name = ?2 AND holds_reservation = 1");
  if (!query.Bind(project, name).Next()) return std::nullopt;
  return model::VmId{query.Id()};
}

void TakeReservation(Tx& tx, model::Vm& vm) {
  CHECK_MSG(!vm.holds_reservation, "a VM's reservation is taken twice");
  const Resources demand = Demand(vm.spec);
  tx.counters.Reserve(vm.project, demand);
  if (vm.host) AddToHost(tx, *vm.host, demand);
  vm.holds_reservation = true;
}

void ReleaseReservation(Tx& tx, model::Vm& vm) {
  if (!vm.holds_reservation) return;
  const Resources demand = Demand(vm.spec);
  tx.counters.Release(vm.project, demand);
  if (vm.host) TakeFromHost(tx, *vm.host, demand);
  vm.holds_reservation = false;
}

bool PlaceOn(Tx& tx, model::Vm& vm, const model::HostId& host) {
  CHECK_MSG(vm.holds_reservation, "a VM without a reservation is placed");
  if (vm.host == host) return true;
  if (vm.host && !IsDead(tx, *vm.host)) return false;
  const Resources demand = Demand(vm.spec);
  if (!HasRoom(tx, host, demand)) return false;
  LeaveHost(tx, vm);
  AddToHost(tx, host, demand);
  vm.host = host;
  return true;
}

void LeaveHost(Tx& tx, model::Vm& vm) {
  if (!vm.host) return;
  if (vm.holds_reservation) TakeFromHost(tx, *vm.host, Demand(vm.spec));
  // What was there may be seen again when the host comes back.
  tx.db.Run(
      "INSERT OR IGNORE INTO former_hosts (vm, host, at_ms) "
      "SELECT ?1, id, ?3 FROM hosts WHERE id = ?2 AND (state = 'dead' OR is_returning = 1)",
      vm.id, *vm.host, tx.now);
  ReleasePorts(tx, vm);
  vm.host.reset();
}

}  // namespace vmonce::ledger
