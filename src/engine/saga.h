// A saga: a workflow as a table of steps, each with at most one outside effect and its undo beside
// it. The engine runs the table; it never knows what the steps are about.
//
// Every function here may run twice, or again after a crash at any point, and must end in the same
// state of the world.
#pragma once

#include <any>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/lease_keeper.h"
#include "model/operation.h"
#include "ports/ledger.h"

namespace vmonce::engine {

// What a function of a saga is handed: the record as this worker knows it. Valid during the call
// only.
struct StepContext {
  const model::Operation& operation;
  const model::Item& item;
  const HeldLease& lease;  // Its fence and deadline stand beside every effect.
  Time now;                // The ledger's.
  // What a saga's function has read and the next one would read again: `is_marked` and what it lets
  // through are one moment. Empty at first, and again after every try and every record.
  std::any& seen;
};

// How one try of a step (or of its undo) ended.
struct StepResult {
  enum class Kind {
    kDone,         // The effect is there (or gone, for an undo).
    kAgain,        // In progress; ask again after `again_in`. Not a failure.
    kUnavailable,  // Nothing happened; try later.
    kUnknown,      // It may have happened: look before anything else.
    kRefused,      // Nothing happened, and trying again is useless: undo and fail.
    kFenced,       // The lease is lost: drop everything.
    kRewind,       // Start over from the first step of this direction: something that was undone or
                   // deleted is there again, or what the steps before stood on is lost.
  };

  Kind kind = Kind::kDone;
  std::string detail;                    // For the timeline and the failure; for people.
  std::string code;                      // Failure code of kUnavailable and kRefused.
  Milliseconds again_in{};               // kAgain.
  std::string memo;                      // kAgain: handed to the next try as Item::memo.
  std::vector<ports::VmChange> changes;  // Written with the record of kDone.
  std::vector<model::Event> events;      // Likewise.

  static StepResult Done(std::string detail = {}) { return {Kind::kDone, std::move(detail)}; }
  static StepResult Again(Milliseconds in, std::string memo = {}, std::string detail = {});
  static StepResult Unavailable(std::string code, std::string detail);
  static StepResult Refused(std::string code, std::string detail);
  // The error's code decides: kUnavailable, kUnknown and kFenced as they are; what can never work
  // is kRefused; kInternal is kUnknown, since nothing is claimed about effects.
  static StepResult From(const Error& error);
};

// What was found out there.
struct LookResult {
  enum class Kind {
    kGoOn,      // Go on with `step`: everything before it is there.
    kConflict,  // Something that is not ours is in the way; it is not touched.
    kNoAnswer,  // Nothing can be said now.
    kFenced,
  };
  Kind kind = Kind::kGoOn;
  int step = 0;
  std::string detail;
};

struct Step {
  std::string_view name;
  std::function<StepResult(const StepContext&)> run;
  std::function<StepResult(const StepContext&)> undo;  // Empty: there is nothing to take back.
};

// Written in the transaction that ends an item.
struct Closing {
  std::vector<ports::VmChange> changes;
  std::vector<model::Event> events;
};

struct Saga {
  model::OperationKind kind;
  std::vector<Step> steps;

  // Empty: effects are safe to repeat without looking, and go on where the cursor stands.
  std::function<LookResult(const StepContext&)> look;
  // True when the item's subject is marked for deletion by another operation: the item ends as
  // cancelled. Empty for sagas that a mark does not stop.
  std::function<Result<bool>(const StepContext&)> is_marked;
  // True when no earlier call for the subject is still out in this process. An item never ends
  // undone or cancelled, and never begins to undo, before that. Empty: always.
  std::function<bool(const StepContext&)> is_settled;
  // False: there is no giving up and no undo; steps are tried until they are done (a delete).
  bool may_fail = true;

  std::function<Closing(const StepContext&, const model::Failure&)> on_failed;
  std::function<Closing(const StepContext&)> on_cancelled;
  // Events of the whole operation's end.
  std::function<std::vector<model::Event>(const model::Operation&)> on_finished;
};

// The sagas a worker can run, by kind. Immutable after it was filled.
class SagaTable {
 public:
  // One saga a kind (CHECK).
  void Add(Saga saga);
  const Saga* Find(model::OperationKind kind) const;

 private:
  std::vector<Saga> sagas_;
};

}  // namespace vmonce::engine
