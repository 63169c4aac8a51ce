#include "ledger/forwards.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace vmonce::ledger {
namespace {

using model::Forward;
using model::HostPort;

HostPort PortOf(const Forward& forward) { return {forward.protocol, forward.host_port}; }

class Choice {
 public:
  Choice(Tx& tx, const model::Vm& vm, const ports::PortPlan& plan)
      : tx_(tx), vm_(vm), plan_(plan) {}

  // False: some port cannot be had.
  bool Run() {
    // What stays, and what was asked for by number, before what is free to be anything.
    chosen_.resize(vm_.spec.forwards.size());
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (!Keep(i) && !TakeAskedFor(i)) return false;
    }
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i].host_port == 0 && !TakeFirstFree(i)) return false;
    }
    return true;
  }

  const std::vector<Forward>& chosen() const { return chosen_; }

 private:
  bool IsAvoided(const HostPort& port) const {
    return std::ranges::find(plan_.avoid, port) != plan_.avoid.end();
  }

  bool IsFree(const HostPort& port) {
    if (IsAvoided(port) || std::ranges::find(chosen_, port, &PortOf) != chosen_.end()) return false;
    Query query = tx_.db.Prepare(
        "SELECT vm FROM forwards WHERE host = ?1 AND protocol = ?2 AND host_port = ?3");
    if (!query.Bind(*vm_.host, ToString(port.protocol), port.port).Next()) return true;
    return query.Id() == vm_.id.value;
  }

  bool Keep(std::size_t i) {
    if (i >= vm_.forwards.size() || IsAvoided(PortOf(vm_.forwards[i]))) return false;
    chosen_[i] = vm_.forwards[i];
    return true;
  }

  // False: it was asked for and cannot be had.
  bool TakeAskedFor(std::size_t i) {
    const Forward& asked = vm_.spec.forwards[i];
    if (asked.host_port != 0 && !IsFree(PortOf(asked))) return false;
    chosen_[i] = asked;
    chosen_[i].host_address = plan_.address;
    return true;
  }

  bool TakeFirstFree(std::size_t i) {
    for (int turn = 0; turn < plan_.range.Size(); ++turn) {
      const int port = model::PortAt(plan_.range, vm_.id, turn);
      if (!IsFree({chosen_[i].protocol, port})) continue;
      chosen_[i].host_port = port;
      return true;
    }
    return false;
  }

  Tx& tx_;
  const model::Vm& vm_;
  const ports::PortPlan& plan_;
  std::vector<Forward> chosen_;
};

void DeleteRows(Tx& tx, const model::VmId& vm) {
  tx.db.Run("DELETE FROM forwards WHERE vm = ?1", vm);
}

}  // namespace

bool ReservePorts(Tx& tx, model::Vm& vm, const ports::PortPlan& plan) {
  CHECK_MSG(vm.host.has_value(), "ports are reserved on no host");
  Choice choice(tx, vm, plan);
  if (!choice.Run()) return false;
  if (choice.chosen() == vm.forwards) return true;
  if (!vm.forwards.empty()) {
    ++vm.forward_moves;
    DeleteRows(tx, vm.id);
  }
  vm.forwards = choice.chosen();
  for (const Forward& forward : vm.forwards) {
    // The primary key is the promise; the choice above only keeps away from it.
    tx.db.Run("INSERT INTO forwards (host, protocol, host_port, vm) VALUES (?1, ?2, ?3, ?4)",
              *vm.host, ToString(forward.protocol), forward.host_port, vm.id);
  }
  return true;
}

void ReleasePorts(Tx& tx, model::Vm& vm) {
  if (!vm.forwards.empty()) DeleteRows(tx, vm.id);
  vm.forwards.clear();
  vm.forward_moves = 0;
}

std::vector<model::HostId> HostsUsingPort(Db& db, const HostPort& port) {
  Query query =
      db.Prepare("SELECT host FROM forwards WHERE protocol = ?1 AND host_port = ?2 ORDER BY host");
  query.Bind(ToString(port.protocol), port.port);
  std::vector<model::HostId> hosts;
  while (query.Next()) hosts.push_back(model::HostId{query.Text()});
  return hosts;
}

bool IsFreeSomewhere(Db& db, const HostPort& port) {
  Query query = db.Prepare(
      "SELECT count(*), count(forwards.vm) FROM hosts LEFT JOIN forwards ON "
      "forwards.host = hosts.id AND forwards.protocol = ?1 AND forwards.host_port = ?2 "
      "WHERE hosts.state = 'active'");
  if (!query.Bind(ToString(port.protocol), port.port).Next()) return true;
  const std::int64_t hosts = query.Int();
  const std::int64_t taken = query.Int();
  return hosts == 0 || taken < hosts;
}

}  // namespace vmonce::ledger
