// The serial console of a VM, as bytes of its guest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/invocation.h"

namespace vmonce::app {

struct ConsolePart {
  client::CallResult call;
  std::string bytes;
  std::int64_t next = 0;  // Where the next part begins.
};

ConsolePart ReadConsole(const Invocation& run, std::string_view vm_id, std::int64_t offset);

// Says the last lines of the console on stderr, when there are any.
void SayConsoleTail(const Invocation& run, std::string_view vm_id);

}  // namespace vmonce::app
