// Who wants to know what workers do: metrics, and whoever waits for an operation's end.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "model/operation.h"

namespace vmonce::engine {

// Called on worker threads; must be quick and must not block.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // `outcome`: "done", "again", "unavailable", "unknown", "refused", "fenced", "rewind".
  virtual void StepTried(model::OperationKind kind, std::string_view step, std::string_view outcome,
                         Milliseconds took) = 0;
  // After the record that ended it was committed.
  virtual void OperationEnded(const model::Operation& operation) = 0;
};

}  // namespace vmonce::engine
