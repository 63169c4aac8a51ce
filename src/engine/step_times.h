// How long each step took when it ran last: what the next one of its kind may be expected to take.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

#include "model/operation.h"

namespace vmonce::engine {

// Thread-safe.
class StepTimes {
 public:
  void Note(model::OperationKind kind, int step, std::chrono::nanoseconds took) {
    if (std::atomic<std::int64_t>* const last = Find(kind, step)) *last = took.count();
  }
  // False for a step that has not run in this process.
  bool IsShort(model::OperationKind kind, int step, std::chrono::nanoseconds below) {
    const std::atomic<std::int64_t>* const last = Find(kind, step);
    return last != nullptr && *last >= 0 && *last < below.count();
  }

 private:
  static constexpr std::size_t kKinds = 6;   // model::OperationKind.
  static constexpr std::size_t kSteps = 16;  // More than any saga has; beyond, none is short.

  struct Last {
    std::atomic<std::int64_t> nanoseconds{-1};
  };
  std::atomic<std::int64_t>* Find(model::OperationKind kind, int step) {
    const auto row = static_cast<std::size_t>(kind);
    const auto column = static_cast<std::size_t>(step);
    if (row >= kKinds || column >= kSteps) return nullptr;
    return &last_[row * kSteps + column].nanoseconds;
  }

  std::array<Last, kKinds * kSteps> last_;
};

}  // namespace vmonce::engine
