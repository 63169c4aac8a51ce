// Hosts, and what the reconciler sees on them.
#pragma once

#include <span>
#include <vector>

#include "ledger/transaction.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

void PutHost(Tx& tx, const model::Host& host);
// False when there is no such host.
bool MarkRegistered(Tx& tx, const model::HostId& host);
bool SetHostState(Tx& tx, const model::HostId& host, model::HostState state);
void MarkReturned(Tx& tx, const model::HostId& host);
std::vector<model::Host> Hosts(Db& db);

std::vector<model::Vm> VmsOnHost(Db& db, const model::HostId& host,
                                 std::span<const model::VmId> also);
std::vector<model::VmId> InTombstones(Db& db, std::span<const model::VmId> vms);
std::vector<model::VmId> MovedAway(Db& db, const model::HostId& host,
                                   std::span<const model::VmId> vms);

// How many stood.
int Observe(Tx& tx, std::span<const ports::Observation> observations);

std::vector<ports::StraySighting> NoteStrays(Tx& tx, const model::HostId& host,
                                             std::span<const model::VmId> strays);
// False when it was not sighted.
bool MarkQuarantined(Tx& tx, const model::HostId& host, const model::VmId& vm);

}  // namespace vmonce::ledger
