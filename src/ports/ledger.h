// The door to the ledger. Calls block; each is one transaction (or one consistent read), and each
// stamps times by the ledger's own clock. Errors: kUnavailable (nothing happened), kUnknown (COMMIT
// failed and the rows may be there: read again before saying anything), kInternal (a row that
// breaks an invariant).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/host.h"
#include "model/ids.h"
#include "model/lease.h"
#include "model/operation.h"
#include "model/retention.h"
#include "model/token.h"
#include "model/vm.h"

namespace vmonce::ports {

// --- Accepting (protocol section 5, step 8)
// ---------------------------------------------------------------------

// `vms` are inserted with the operation: name, quota and capacity are decided after the key's
// insert has won.
struct CreateVms {
  std::vector<model::Vm> vms;
  model::Resources demand;    // Of all of them.
  model::Resources quota;     // The project's limits now.
  model::Resources capacity;  // What all usable hosts together may reserve.
};

// Marks the VM for deletion. Already deleting or deleted: nothing is written, and the outcome is
// Joined.
struct DeleteVm {
  model::VmId vm;
  std::optional<std::int64_t> if_version;
};

// Sets `desired` and begins to count restarts anew; the VM must be ready.
struct PowerVm {
  model::VmId vm;
  model::Desired desired = model::Desired::kRunning;
  std::optional<std::int64_t> if_version;
};

// A start by the service itself. Taken when the row still is of that version, model::JudgeRestart
// says that it is due, and nothing else is about to act on the VM; else kStaleVersion or
// kWrongState. Taking it makes a new version: of any number of askings about one stop, one is
// taken.
struct RestartVm {
  model::VmId vm;
  std::int64_t if_version = 0;
};

// Done at once: the operation is recorded as succeeded when it has a key, and not at all otherwise.
// With a `desired` that the machine is not in, the operation (a kStart or kStop) is still to be
// done, as PowerVm's is, and the VM must be ready.
struct UpdateVm {
  model::VmId vm;
  std::optional<std::string> name;
  std::optional<std::map<std::string, std::string>> labels;
  std::optional<model::Desired> desired;
  std::optional<model::RestartPolicy> restart;
  std::optional<std::int64_t> if_version;
};

// Asks that the new operation be leased to its acceptor in the same transaction.
struct LeaseRequest {
  model::ReplicaId owner;
  Milliseconds ttl{};
};

struct Submission {
  // Ids, key, fingerprint, intent, items; the ledger sets sequence, state, fence, lease and times.
  model::Operation operation;
  std::variant<CreateVms, DeleteVm, PowerVm, RestartVm, UpdateVm> change;
  std::vector<model::Event> events;
  std::optional<LeaseRequest> lease;
  std::int64_t max_backlog = 0;  // More unfinished operations than this: kBacklogFull.
  // More records with a key in this project: kTooManyKeys. A delete is never held up by it.
  std::int64_t max_keys = std::numeric_limits<std::int64_t>::max();
  std::optional<model::TokenId> token;  // With which it was asked for; told in the timeline.
};

struct Accepted {
  model::Operation operation;
  std::vector<model::Vm> vms;
};
// The key was there already (this request wrote nothing).
struct Known {
  model::Operation operation;
  std::vector<model::Vm> vms;
};
struct KnownTombstone {
  model::Tombstone tombstone;
};
// A delete of a VM that is being, or has been, deleted.
struct Joined {
  std::optional<model::Operation> operation;  // The delete; absent when its record has expired.
  model::Vm vm;
};
enum class DeclineReason {
  kNameTaken,  // other_vm holds it.
  kQuotaExceeded,
  kNoCapacity,
  kVmNotFound,    // Not in this project.
  kStaleVersion,  // if_version is not the row's.
  kWrongState,    // The VM's state does not allow it; `vm_state` says which.
  kBacklogFull,
  kImageGone,  // The stored image that a VM pins was removed; `detail` names it.
  kPortTaken,  // A host port that was asked for is another VM's on every active host.
  kTooManyKeys,
};
// Nothing was written, the key is not consumed.
struct Declined {
  DeclineReason reason;
  std::optional<model::VmId> other_vm;
  std::optional<model::VmState> vm_state;
  std::string detail;  // Which resource, how much is used and asked.
};
using AcceptOutcome = Result<std::variant<Accepted, Known, KnownTombstone, Joined, Declined>>;

// --- Advancing (under the fence)
// ----------------------------------------------------------------------------------

// How host ports are reserved for a VM's forwards on the host that it is on. Those that it has
// already stay, except what is to be avoided; others are the first free ones in the VM's own order
// (model::PortAt), or those that were asked for.
struct PortPlan {
  model::PortRange range;
  std::string address;                 // Where the host listens: kept with the reservation.
  std::vector<model::HostPort> avoid;  // Another program of the host has them.
};

// What a step changes about a VM's row. Absent members stay as they are. A state change must be
// legal (CHECK).
struct VmChange {
  model::VmId vm;
  std::optional<model::VmState> state;
  std::optional<model::Desired> desired;
  std::optional<model::Observed> observed;
  // Written with `observed`; anything but a stop has none.
  model::StopCause stopped_by = model::StopCause::kNone;
  std::optional<model::HostId>
      place_on;  // Reserves the VM's demand on that host; kNoRoom when it does not fit, or when the
                 // VM has another host that is not dead.
  std::optional<PortPlan> reserve_ports;  // After place_on; kPortTaken when one cannot be had.
  // Gives it back, the host ports with it, and forgets the host. Leaving a dead host, either way,
  // is written down: see MovedAway().
  bool release_host = false;
  bool release_reservation = false;  // Name and quota; a second release changes nothing.
  bool take_hold = false;            // Makes this operation the VM's holder; kHeld when another is.
  bool release_hold = false;
  std::optional<model::Failure> failure;
  bool clear_failure = false;
};

// One transaction of a worker: written only if the lease (owner and fence) still stands.
struct Advance {
  model::Lease lease;
  model::OperationState state = model::OperationState::kRunning;
  std::vector<model::Item> items;  // All of the operation's.
  std::optional<model::Failure> failure;
  bool is_stuck = false;
  bool drop_secrets = false;
  // Set: nothing is written when that subject's VM is marked for deletion (kMarked).
  std::optional<Uuid> unless_marked;
  // Set: the lease is given back; the operation is due at that time (ignored when `state` is a
  // finished one, which always gives it back).
  std::optional<Milliseconds> release_due_in;
  std::vector<VmChange> changes;
  std::vector<model::TimelineEntry> timeline;
  std::vector<model::Event> events;
};

enum class AdvanceOutcome {
  kRecorded,
  kLost,       // Another owner or fence: drop everything, touch nothing more.
  kMarked,     // See Advance::unless_marked.
  kHeld,       // See VmChange::take_hold.
  kNoRoom,     // See VmChange::place_on.
  kPortTaken,  // See VmChange::reserve_ports.
};

// --- Reading

struct Page {
  int most = 50;
  std::string after;  // Opaque; empty for the first page. kInvalid when it is not one of ours.
};

template <typename T>
struct PageOf {
  std::vector<T> rows;
  std::string next;  // Empty: no more.
};

struct VmFilter {
  std::optional<std::string> name;
  std::optional<model::VmState> state;
  std::optional<std::pair<std::string, std::string>> label;
  std::optional<Digest> key_hash;
  bool with_deleted = false;  // Deleted ones show only when asked for, or by state or key.
};

struct OperationFilter {
  std::optional<Digest> key_hash;
  std::optional<model::OperationState> state;
  std::optional<model::OperationKind> kind;
  std::optional<model::VmId> vm;
};

// --- Reconciling

// What the reconciler saw of a VM: written only if the row's version still stands.
struct Observation {
  model::VmId vm;
  std::int64_t version = 0;
  model::Observed observed = model::Observed::kUnknown;
  model::StopCause stopped_by = model::StopCause::kNone;  // Of kStopped.
  std::optional<model::VmState> state;                    // ready ⇄ missing
  std::optional<std::vector<std::string>> addresses;      // Absent: as they were.
  std::vector<model::Event> events;
};

// A machine on a host that no row wants, between two sweeps.
struct StraySighting {
  model::HostId host;
  model::VmId vm;
  Time first_seen{};
  int sightings = 0;
  bool is_quarantined = false;
};

struct SweepCounts {
  int expired = 0;  // Records turned into tombstones.
  int tombstones_dropped = 0;
  int events_dropped = 0;
};

struct LedgerTotals {
  std::int64_t unfinished = 0;
  std::map<std::string, std::int64_t> operations_in_state;
  std::int64_t stuck = 0;
  std::int64_t outbox = 0;
  std::int64_t last_sequence = 0;  // The highest accept sequence number ever given.
  std::optional<Time> oldest_unfinished;
  std::optional<Time> oldest_event;
};

// Thread-safe.
class Ledger {
 public:
  virtual ~Ledger() = default;

  virtual model::LedgerId Id() const = 0;
  // The ledger's clock.
  virtual Time Now() = 0;
  // kUnavailable when a read does not work now.
  virtual Status Ping() = 0;

  // One transaction for the whole batch; the outcome of each member, in order. A refused member
  // undoes itself alone.
  virtual std::vector<AcceptOutcome> Accept(std::span<const Submission> batch) = 0;

  // Starts attempt `expected_attempt + 1` of a failed operation whose cause may pass: reserves
  // quota and names again for the items that failed so, and no others. Known: it was not in that
  // state any more (another retry won).
  virtual AcceptOutcome Revive(const model::OperationId& operation, int expected_attempt,
                               const model::Resources& quota, const model::Resources& capacity) = 0;

  // --- Workers
  // Leases due, unfinished operations nobody holds (unleased, or a lease that ran out): fence + 1.
  // Items of an operation whose lease ran out, or that another replica gave back with a call out
  // (call_left_by), get look_first and unsettled_until = now + `settle`.
  virtual Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner,
                                                        Milliseconds ttl, Milliseconds settle,
                                                        int most) = 0;
  // Extends these leases; answers those that are lost.
  virtual Result<std::vector<model::OperationId>> Renew(std::span<const model::Lease> leases,
                                                        Milliseconds ttl) = 0;
  virtual Result<AdvanceOutcome> Record(const Advance& advance) = 0;
  // When the next unfinished operation becomes due or its lease runs out; absent when there is
  // none.
  virtual Result<std::optional<Time>> NextDue() = 0;
  // Makes an unleased operation due now; a leased or finished one is left alone.
  virtual Status MakeDue(const model::OperationId& operation) = 0;

  // --- Reads
  virtual Result<std::optional<std::variant<Known, KnownTombstone>>> FindByKey(
      const model::ProjectId& project, const Digest& key_hash) = 0;
  virtual Result<std::optional<model::Operation>> GetOperation(const model::OperationId& id) = 0;
  virtual Result<PageOf<model::Operation>> ListOperations(const model::ProjectId& project,
                                                          const OperationFilter& filter,
                                                          const Page& page) = 0;
  virtual Result<std::optional<model::Vm>> GetVm(const model::VmId& id) = 0;
  virtual Result<std::vector<model::Vm>> VmsOf(const model::OperationId& creator) = 0;
  virtual Result<PageOf<model::Vm>> ListVms(const model::ProjectId& project, const VmFilter& filter,
                                            const Page& page) = 0;
  virtual Result<std::vector<model::TimelineEntry>> Timeline(const model::OperationId& id) = 0;
  // Adds lines that change nothing else (duplicates served, sightings).
  virtual Status AppendTimeline(std::span<const model::TimelineEntry> entries) = 0;
  virtual Result<std::vector<model::Event>> Outbox(std::int64_t most) = 0;
  virtual Result<LedgerTotals> Totals() = 0;
  // What a project holds of its quota now.
  virtual Result<model::Resources> Usage(const model::ProjectId& project) = 0;
  // How many records with a key it has.
  virtual Result<std::int64_t> LiveKeys(const model::ProjectId& project) = 0;

  // --- Hosts
  // Makes the row or updates URI and capacity; state, registration and reservations stay.
  virtual Status PutHost(const model::Host& host) = 0;
  virtual Status MarkRegistered(const model::HostId& host) = 0;
  // kNotFound: no such host. Dead makes the host returning, too, until MarkReturned().
  virtual Status SetHostState(const model::HostId& host, model::HostState state) = 0;
  // What was moved away or deleted while the host was dead is stopped there. Nothing is written
  // while it is dead.
  virtual Status MarkReturned(const model::HostId& host) = 0;
  virtual Result<std::vector<model::Host>> Hosts() = 0;
  // Those on which some VM has reserved the port.
  virtual Result<std::vector<model::HostId>> HostsUsingPort(const model::HostPort& port) = 0;

  // --- Reconciler
  // Every VM whose row names the host and that is not deleted, and those of `also` in whatever
  // state.
  virtual Result<std::vector<model::Vm>> VmsOnHost(const model::HostId& host,
                                                   std::span<const model::VmId> also) = 0;
  // Those of `vms` that a tombstone names.
  virtual Result<std::vector<model::VmId>> InTombstones(std::span<const model::VmId> vms) = 0;
  // Those of `vms` that once left this host while it was dead, and are not placed there now.
  virtual Result<std::vector<model::VmId>> MovedAway(const model::HostId& host,
                                                     std::span<const model::VmId> vms) = 0;
  virtual Result<int> Observe(std::span<const Observation> observations) = 0;  // How many stood.
  // Replaces the host's sightings: a stray that was not seen again is forgotten; one seen again
  // counts up.
  virtual Result<std::vector<StraySighting>> NoteStrays(const model::HostId& host,
                                                        std::span<const model::VmId> strays) = 0;
  virtual Status MarkQuarantined(const model::HostId& host, const model::VmId& vm) = 0;

  // --- Sweeper
  virtual Result<SweepCounts> Sweep(const model::RetentionPolicy& policy, int most_rows) = 0;
};

}  // namespace vmonce::ports
