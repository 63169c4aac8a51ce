// A guest's serial console in a file that QEMU appends to.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// As Hypervisor::ReadConsole. Where old output was dropped, reading goes on behind it.
Result<ports::ConsoleChunk> ReadConsoleFile(const std::string& path, std::int64_t offset,
                                            std::size_t most);

// Gives the space of the oldest output back when the file holds more than `most` bytes, and keeps
// the newest half of that: a guest must not fill the host's disk. Offsets stay what they are. A
// file that is not there is ok. kRefused: the file system cannot do that.
Status TrimConsoleFile(const std::string& path, std::int64_t most);

// The range that a read of `most` bytes at `offset` (negative: from the end) covers. Pure.
struct ConsoleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
ConsoleRange RangeOf(std::int64_t offset, std::size_t most, std::int64_t size);

}  // namespace vmonce::hypervisor
