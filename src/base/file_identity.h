// What tells a file from another one that takes its place, without reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace vmonce {

// The device is no part of it: its number may be another one after a reboot.
struct FileIdentity {
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  // Since 1970.
  std::int64_t inode = 0;
  // Since when it is this file, whatever it says of itself (its ctime). No part of the identity: a
  // new link to it or a change of its rights moves it.
  Time since{};

  bool operator==(const FileIdentity& other) const {
    return bytes == other.bytes && modified_ns == other.modified_ns && inode == other.inode;
  }
};

// Absent: nothing stands at the path. An error: that cannot be told.
Result<std::optional<FileIdentity>> IdentityOf(const std::string& path);

}  // namespace vmonce
