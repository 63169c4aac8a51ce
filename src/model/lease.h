// Who may advance an operation, until when, and the number that settles it when two believe so.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "model/ids.h"

namespace vmonce::model {

// Grows by one at every take-over of an operation. Checked by every write of a step and beside
// every outside effect.
struct Fence {
  std::int64_t value = 0;
  auto operator<=>(const Fence&) const = default;
};

// What stands beside an effect and in a machine's label. A machine outlives operations, whose
// fences each start anew, so an operation accepted later (`sequence`) is above every take-over of
// an earlier one.
// Every taking adds one, at most five a second while another operation holds the VM: the bits are
// enough for a year and a half of nothing else.
inline constexpr int kTakeOverBits = 28;
constexpr Fence EffectFence(std::int64_t sequence, Fence fence) {
  return {(sequence << kTakeOverBits) + fence.value};
}
// Its parts again.
constexpr std::int64_t SequenceOf(Fence effect) { return effect.value >> kTakeOverBits; }
constexpr Fence TakeOverOf(Fence effect) {
  return {effect.value & ((std::int64_t{1} << kTakeOverBits) - 1)};
}

// What the ledger's lease column says when nobody holds it. A value that is neither this nor a
// ReplicaId means locked (by an operator, by a newer version), not free.
inline constexpr std::string_view kUnleased = "unleased";

// Held by one worker while it advances one operation.
struct Lease {
  OperationId operation;
  ReplicaId owner;
  Fence fence;

  bool operator==(const Lease&) const = default;
};

}  // namespace vmonce::model
