#include "ledger/hosts.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "ledger/rows.h"
#include "model/restart.h"

namespace vmonce::ledger {
namespace {

// Whether the observation's change may be written to the row as it is now.
bool Stands(const ports::Observation& observation, const std::optional<model::Vm>& vm) {
  return vm && vm->version == observation.version && vm->state != model::VmState::kDeleted;
}

std::map<model::VmId, ports::StraySighting> StraysOf(Tx& tx, const model::HostId& host) {
  std::map<model::VmId, ports::StraySighting> strays;
  Query query = tx.db.Prepare(
      "SELECT vm, first_seen_ms, sightings, is_quarantined FROM strays WHERE host = ?1");
  query.Bind(host);
  while (query.Next()) {
    ports::StraySighting sighting;
    sighting.host = host;
    sighting.vm = model::VmId{query.Id()};
    sighting.first_seen = query.At();
    sighting.sightings = query.SmallInt();
    sighting.is_quarantined = query.Bool();
    strays.emplace(sighting.vm, std::move(sighting));
  }
  return strays;
}

}  // namespace

void PutHost(Tx& tx, const model::Host& host) {
  tx.db.Run(
      "INSERT INTO hosts (id, uri, state, is_registered, capacity_vms, capacity_cpus, "
      "capacity_memory_mib, capacity_disk_gib, reserved_vms, reserved_cpus, reserved_memory_mib, "
      "reserved_disk_gib) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0, 0) "
      "ON CONFLICT (id) DO UPDATE SET uri = excluded.uri, capacity_vms = excluded.capacity_vms, "
      "capacity_cpus = excluded.capacity_cpus, capacity_memory_mib = excluded.capacity_memory_mib, "
      "capacity_disk_gib = excluded.capacity_disk_gib",
      host.id, host.uri, ToString(host.state), host.is_registered, host.capacity);
}

bool MarkRegistered(Tx& tx, const model::HostId& host) {
  tx.db.Run("UPDATE hosts SET is_registered = 1 WHERE id = ?1", host);
  return tx.db.Changes() > 0;
}

bool SetHostState(Tx& tx, const model::HostId& host, model::HostState state) {
  tx.db.Run(
      "UPDATE hosts SET state = ?2, is_returning = (is_returning OR ?2 = 'dead') WHERE id = ?1",
      host, ToString(state));
  return tx.db.Changes() > 0;
}

void MarkReturned(Tx& tx, const model::HostId& host) {
  tx.db.Run("UPDATE hosts SET is_returning = 0 WHERE id = ?1 AND state <> 'dead'", host);
}

std::vector<model::Host> Hosts(Db& db) {
  Query query = db.Prepare(
      "SELECT id, uri, state, is_registered, capacity_vms, capacity_cpus, capacity_memory_mib, "
      "capacity_disk_gib, reserved_vms, reserved_cpus, reserved_memory_mib, reserved_disk_gib, "
      "is_returning, is_unread FROM hosts ORDER BY id");
  std::vector<model::Host> hosts;
  while (query.Next()) {
    model::Host& host = hosts.emplace_back();
    host.id.value = query.Text();
    host.uri = query.Text();
    const auto state = model::ParseHostState(query.Text());
    if (!state) db.Fail(ErrorCode::kInternal, "a host's state cannot be read");
    host.state = state.value_or(model::HostState::kDead);
    host.is_registered = query.Bool();
    host.capacity = query.Amounts();
    host.reserved = query.Amounts();
    host.is_returning = query.Bool();
    host.is_unread = query.Bool();
  }
  return hosts;
}

std::vector<model::Vm> VmsOnHost(Db& db, const model::HostId& host,
                                 std::span<const model::VmId> also) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM vms WHERE host = ?1 AND deleted_ms IS NULL ORDER BY id", kVmColumns);
  std::vector<model::Vm> vms;
  std::set<model::VmId> found;
  {
    Query query = db.Prepare(sql);
    query.Bind(host);
    while (query.Next()) {
      vms.push_back(ReadVm(db, query));
      found.insert(vms.back().id);
    }
  }
  for (const model::VmId& id : also) {
    if (!found.insert(id).second) continue;
    if (auto vm = FindVm(db, id)) vms.push_back(std::move(*vm));
  }
  return vms;
}

std::vector<model::VmId> InTombstones(Db& db, std::span<const model::VmId> vms) {
  std::vector<model::VmId> found;
  for (const model::VmId& vm : vms) {
    Query query = db.Prepare("SELECT 1 FROM tombstone_vms WHERE id = ?1");
    if (query.Bind(vm).Next()) found.push_back(vm);
  }
  return found;
}

std::vector<model::VmId> MovedAway(Db& db, const model::HostId& host,
                                   std::span<const model::VmId> vms) {
  std::vector<model::VmId> found;
  for (const model::VmId& vm : vms) {
    Query query = db.Prepare(
        "SELECT 1 FROM former_hosts WHERE vm = ?1 AND host = ?2 AND NOT EXISTS "
        "(SELECT 1 FROM vms WHERE vms.id = former_hosts.vm AND vms.host = former_hosts.host)");
    if (query.Bind(vm, host).Next()) found.push_back(vm);
  }
  return found;
}

int Observe(Tx& tx, std::span<const ports::Observation> observations) {
  int stood = 0;
  for (const ports::Observation& observation : observations) {
    auto vm = FindVm(tx.db, observation.vm);
    if (!Stands(observation, vm)) continue;
    ++stood;
    const model::VmState state = observation.state.value_or(vm->state);
    CHECK_MSG(IsLegal(vm->state, state) || !tx.db.ok(),
              fmt::format("VM {} observed from {} to {}", ToString(vm->id), ToString(vm->state),
                          ToString(state)));
    const auto addresses = observation.addresses.value_or(vm->addresses);
    if (vm->state != state || vm->observed != observation.observed || vm->addresses != addresses) {
      vm->state = state;
      vm->observed = observation.observed;
      vm->stopped_by = observation.stopped_by;
      vm->restarts = RestartsInARow(*vm, tx.now);
      vm->addresses = addresses;
      ++vm->version;
      vm->updated = tx.now;
      UpdateVm(tx.db, *vm);
    }
    InsertEvents(tx.db, observation.events, tx.now);
  }
  return stood;
}

std::vector<ports::StraySighting> NoteStrays(Tx& tx, const model::HostId& host,
                                             std::span<const model::VmId> strays) {
  const auto before = StraysOf(tx, host);
  tx.db.Run("DELETE FROM strays WHERE host = ?1", host);
  std::vector<ports::StraySighting> sightings;
  for (const model::VmId& vm : std::set<model::VmId>(strays.begin(), strays.end())) {
    const auto known = before.find(vm);
    ports::StraySighting sighting{host, vm, tx.now, 0, false};
    if (known != before.end()) sighting = known->second;
    ++sighting.sightings;
    tx.db.Run(
        "INSERT INTO strays (host, vm, first_seen_ms, sightings, is_quarantined) "
        "VALUES (?1, ?2, ?3, ?4, ?5)",
        host, vm, sighting.first_seen, sighting.sightings, sighting.is_quarantined);
    sightings.push_back(std::move(sighting));
  }
  return sightings;
}

bool MarkQuarantined(Tx& tx, const model::HostId& host, const model::VmId& vm) {
  tx.db.Run("UPDATE strays SET is_quarantined = 1 WHERE host = ?1 AND vm = ?2", host, vm);
  return tx.db.Changes() > 0;
}

}  // namespace vmonce::ledger
