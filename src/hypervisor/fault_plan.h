// What a simulated host does wrong, decided call by call.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/ids.h"

namespace vmonce::hypervisor {

enum class SimulatedCall {
  kConnect,
  kLook,
  kList,
  kListVolumes,
  kPortsInUse,
  kCreateDisk,
  kDeleteDisk,
  kCreateSeed,
  kDeleteSeed,
  kDefine,
  kStampFence,
  kUndefine,
  kStart,
  kDestroy,
  kShutdown,
  kReboot,
  kReadConsole,
};

std::string_view ToString(SimulatedCall call);

// In the order in which they act. Several may be set.
struct Fault {
  Milliseconds hang{0};          // The call stands still so long before it does anything.
  std::optional<Error> instead;  // Answered; nothing happens.
  // The effect (its guard checked before) takes place by itself so much later; the caller is told
  // kUnknown at once.
  Milliseconds apply_after{0};
  // With apply_after, of a start: undefining the domain meanwhile succeeds, and the start leaves it
  // running all the same (tried: libvirt does so).
  bool outlives_undefine = false;
  bool lose_reply = false;  // The effect takes place; the caller is told kUnknown.
  // Lists only: the list as it was so long ago, and without these VMs.
  Milliseconds list_lag{0};
  std::vector<model::VmId> omit;
};

// Thread-safe. Asked once at the start of every call, so a plan knows which of its faults fired.
// `vm` is absent for calls about the whole host.
class FaultPlan {
 public:
  virtual ~FaultPlan() = default;
  virtual Fault Next(SimulatedCall call, const std::optional<model::VmId>& vm) = 0;
};

// Nothing ever goes wrong.
class NoFaults final : public FaultPlan {
 public:
  Fault Next(SimulatedCall, const std::optional<model::VmId>&) override { return {}; }
};

}  // namespace vmonce::hypervisor
