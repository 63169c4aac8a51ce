// Whether KVM really runs anything here. On a nested machine /dev/kvm may open, make a machine, and
// then hang for ever at the first instruction.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace vmonce::hypervisor {

// What an operator asks for: kAuto is KVM where it is proven to run, and QEMU's own translation
// (TCG) elsewhere.
enum class Accelerator { kAuto, kKvm, kTcg };
std::optional<Accelerator> ParseAccelerator(std::string_view text);  // "auto", "kvm", "tcg".

struct KvmProbe {
  bool is_usable = false;
  std::string cause;  // For people; why not, or "".
};

// First lets a virtual processor run two instructions in a child process, then lets QEMU boot its
// firmware up to a boot sector of one line: here and there the first works and the second hangs.
// Both are killed when they are not done `within` together. Blocks at most a moment longer than
// that. Thread-safe.
KvmProbe ProbeKvm(Milliseconds within);

}  // namespace vmonce::hypervisor
