// An image of the store, as the ledger keeps it: its files are named by what they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/uuid.h"
#include "model/image.h"

namespace vmonce::model {

struct StoredImage {
  Uuid id;  // Of the registration: another image of the same name has another.
  std::string name;
  ImageKind kind = ImageKind::kDisk;
  std::optional<Digest> disk;
  std::string disk_format;  // "qcow2" or "raw"; empty without a disk.
  std::optional<Digest> kernel;
  std::optional<Digest> initrd;
  std::string cmdline;
  std::vector<std::string> aliases;
  std::int64_t bytes = 0;  // Of all its files.
  Time added{};

  // Whether a VM made of the other would be the same one, whatever they are called.
  bool HasContentOf(const StoredImage& other) const {
    return kind == other.kind && disk == other.disk && disk_format == other.disk_format &&
           kernel == other.kernel && initrd == other.initrd && cmdline == other.cmdline;
  }
  std::vector<Digest> Files() const {
    std::vector<Digest> files;
    for (const auto& file : {disk, kernel, initrd}) {
      if (file) files.push_back(*file);
    }
    return files;
  }
  bool operator==(const StoredImage&) const = default;
};

}  // namespace vmonce::model
