// One worker's run over one leased operation: the state machine of protocol section 9, between two
// leases.
#pragma once

#include <any>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/worker.h"

namespace vmonce::engine {

class OperationRun {
 public:
  OperationRun(const WorkerParts& parts, const Saga& saga, HeldLease& lease,
               model::Operation& operation);

  // Advances every item until the operation ended, all that is left must wait, or the lease is
  // lost. When `stop` is requested no further step is begun, and the lease is given back.
  void Run(const std::stop_token& stop);

 private:
  // What an item may do next after something happened to it.
  enum class Next {
    kGoOn,  // Another step may run now.
    kStop,  // It ended, or must wait; other items may go on.
    kLost,  // The lease is lost: nothing more may be touched.
  };

  Next Advance(model::Item& item);
  // kGoOn: not marked.
  Next CheckMark(model::Item& item);
  Next Look(model::Item& item);
  Next RunStep(model::Item& item);
  bool WaitsForCalls(model::Item& item);
  Next Undo(model::Item& item);

  Next StepDone(model::Item& item, StepResult result);
  Next Again(model::Item& item, const StepResult& result);
  Next Failed(model::Item& item, const StepResult& result);
  Next Unknown(model::Item& item, const StepResult& result);
  Next UndoStepDone(model::Item& item, StepResult result);
  Next UndoFailed(model::Item& item, const StepResult& result);

  // `from`: the last step whose effect may be there.
  Next BeginUndo(model::Item& item, model::Failure failure, int from);
  int LastStep() const { return static_cast<int>(saga_.steps.size()) - 1; }
  Next EndFailed(model::Item& item);
  Next EndCancelled(model::Item& item);

  // Writes the item's new state; the whole operation ends with it when no item is left. When the
  // ledger declines (marked, held, no room) the item is put back to `before`, and the note of what
  // was to be recorded is dropped.
  Next Record(model::Item& item, const model::Item& before, ports::Advance advance);
  // True when this record, of a step that is done, may ride with the next one.
  bool MayRide(const model::Item& item, const ports::Advance& advance) const;
  Next Declined(model::Item& item, ports::AdvanceOutcome outcome);
  // Gives the lease back until the first waiting item may go on.
  void Release();
  void NoteCallsOut(model::Item& item);

  StepResult Try(const model::Item& item, const std::function<StepResult(const StepContext&)>& call,
                 std::string_view step);
  StepContext ContextOf(const model::Item& item);
  bool IsSettled(const model::Item& item);
  Milliseconds BackoffAfter(int failures);
  void Wait(model::Item& item, Milliseconds in);
  void Note(const model::Item& item, std::string event, std::string detail);
  std::string StepName(const model::Item& item) const;
  void SummariseInto(ports::Advance& advance);
  bool IsVerifying() const;
  bool IsStuck() const;

  const WorkerParts& parts_;
  const Saga& saga_;
  HeldLease& lease_;
  model::Operation& operation_;
  // Lines that wait for the next record.
  std::vector<model::TimelineEntry> notes_;
  // Steps of the current item below this were done before and are done again, since a look found
  // less than was recorded: that they succeed says nothing of the step that failed.
  int redo_until_ = 0;
  std::any seen_;              // See StepContext.
  Instant recorded_;           // When the ledger last heard of us.
  bool is_unsettled_ = false;  // Something waits for an earlier call to return.
  bool has_ended_ = false;
};

}  // namespace vmonce::engine
