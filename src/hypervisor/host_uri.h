// What kind of host a URI names. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace vmonce::hypervisor {

enum class HostKind {
  kSimulated,     // simulated: or simulated:DIR
  kTest,          // test:///default, libvirt's own test driver
  kEmbedded,      // qemu:///embed?root=DIR
  kLocalDaemon,   // qemu:///system, qemu+unix:///system?socket=PATH
  kRemoteDaemon,  // qemu+ssh://HOST/system, qemu+tls://HOST/system
};

struct HostUri {
  HostKind kind = HostKind::kSimulated;
  std::string uri;        // As libvirt is to get it.
  std::string directory;  // kEmbedded: the root. kSimulated: where it is kept, or empty.
};

// kInvalid, with what would be valid in the detail.
Result<HostUri> ParseHostUri(std::string_view uri);

// How long an abandoned call may still take effect after our process died (protocol section 9).
Milliseconds DefaultSettleTime(HostKind kind);

}  // namespace vmonce::hypervisor
