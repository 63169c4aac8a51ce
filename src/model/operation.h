// An operation: the durable record of one accepted mutating request. It is the idempotency record,
// and it is the cursor of the work. Pure values; the engine reads nothing of the model but this,
// leases and limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/sha256.h"
#include "model/ids.h"
#include "model/lease.h"

namespace vmonce::model {

enum class OperationKind { kCreate, kDelete, kStart, kStop, kReboot, kUpdate };

enum class OperationState {
  kAccepted,   // Recorded; no worker has begun.
  kRunning,    // A worker advances it.
  kVerifying,  // The outcome of an effect is unknown and is being established.
  kSucceeded,
  kFailed,     // Ended with no effect left.
  kCancelled,  // Its VM was deleted meanwhile.
};

// "create", "accepted" and so on: the words of the API and of the ledger.
std::string_view ToString(OperationKind kind);
std::string_view ToString(OperationState state);
std::optional<OperationKind> ParseOperationKind(std::string_view text);
std::optional<OperationState> ParseOperationState(std::string_view text);

// True for succeeded, failed and cancelled.
bool IsFinished(OperationState state);

// accepted → running ⇄ verifying → succeeded | failed | cancelled, and failed → accepted for a new
// attempt. A first record may pass through `running` unseen: accepted leads wherever running does.
// Staying is legal until the end; what has ended is written once.
bool IsLegal(OperationState from, OperationState to);

// Why an operation or one of its items failed.
struct Failure {
  std::string code;      // Stable, snake_case: "hypervisor_refused", "no_capacity", ...
  std::string detail;    // For people; the first cause, kept through replays.
  bool passing = false;  // The cause may pass: the same key starts a new attempt.

  bool operator==(const Failure&) const = default;
};

enum class ItemPhase {
  kForward,    // Steps are being done.
  kUndoing,    // A step failed; effects are being taken back, last first.
  kDone,       // Every step is done.
  kFailed,     // Undone: no effect is left. Item::failure says why.
  kCancelled,  // Its subject was marked for deletion; whoever marked it cleans up.
};

std::string_view ToString(ItemPhase phase);
std::optional<ItemPhase> ParseItemPhase(std::string_view text);
inline bool IsEnded(ItemPhase phase) {
  return phase == ItemPhase::kDone || phase == ItemPhase::kFailed || phase == ItemPhase::kCancelled;
}

// One index of an operation: its own cursor and its own end. Only the holder of the lease writes
// it.
struct Item {
  int index = 0;
  Uuid subject;  // What the item is about (a VM's id); the engine never looks inside.
  ItemPhase phase = ItemPhase::kForward;
  // Forward: the step to run next. Undoing: the step to undo next; -1 when nothing is left to undo.
  int step = 0;
  int failures = 0;     // Of this step in a row: times that nothing happened, whatever the cause.
  int blind_looks = 0;  // Looks in a row that got no answer.
  bool look_first =
      true;           // What is out there is not known for certain: look before the next effect.
  Time not_before{};  // Backoff: nothing is tried earlier.
  Time unsettled_until{};  // A call whose process died may still take effect until then.
  // The replica that gave the lease back while a call of its own was out; empty: none was.
  std::string call_left_by;
  std::string memo;  // A step's own note between two tries of it; empty when a step begins.
  std::optional<Failure> failure;

  bool operator==(const Item&) const = default;
};

struct Operation {
  OperationId id;
  std::int64_t sequence = 0;  // The ledger's accept sequence number; 0 until accepted.
  ProjectId project;
  OperationKind kind = OperationKind::kCreate;
  OperationState state = OperationState::kAccepted;

  // The idempotency record. Without a key (optional on some routes) key_hash is absent and nothing
  // finds it by key.
  std::optional<Digest> key_hash;
  std::string key_prefix;  // Redacted: at most 8 characters.
  Digest fingerprint{};
  int fingerprint_version = 1;
  std::string canonical_request;  // JSON; secrets replaced by their MAC.
  std::string intent;             // JSON; the face-independent normal form.
  std::string face;               // "rest", "ec2", ...
  std::string sealed_secrets;     // Empty when there are none, or when no longer needed.

  int attempt = 1;
  Fence fence;
  std::string lease_owner{kUnleased};
  Time lease_until{};
  Time due{};
  bool is_stuck =
      false;  // The attempt cap of a step was passed; a person should look. Work goes on.
  std::vector<Item> items;
  std::optional<Failure> failure;

  Time accepted{};
  Time updated{};
  std::optional<Time> finished;

  Lease CurrentLease() const { return Lease{id, ReplicaId{lease_owner}, fence}; }
};

// What is told of a key whose record has expired (protocol section 7).
struct Tombstone {
  ProjectId project;
  Digest key_hash{};
  Digest fingerprint{};
  std::vector<VmId> vms;
  OperationState final_state = OperationState::kSucceeded;
  Time first_seen{};
  Time expires{};
};

// One line of the story of an operation.
struct TimelineEntry {
  OperationId operation;
  Time at{};            // By the ledger's clock; the ledger sets it when it is the epoch.
  std::string replica;  // Who did it.
  int attempt = 1;
  int index = -1;  // The item, or -1 for the whole operation.
  std::string
      event;  // snake_case: "accepted", "leased", "looked", "step_done", "duplicate_served", ...
  std::string detail;  // For people; no secrets.
};

// A row of the outbox: committed with the change it tells of.
struct Event {
  Uuid id;           // Time-ordered; what consumers deduplicate by.
  std::string type;  // "vm.ready", "operation.failed", ...
  ProjectId project;
  std::string subject;  // The id of what it is about, as text.
  std::string data;     // JSON, no secrets.
  Time at{};            // Set by the ledger.
};

}  // namespace vmonce::model
