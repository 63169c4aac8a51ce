// Images: what a VM's disk or kernel comes from. A VM keeps a pinned copy of the image it was
// accepted with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vmonce::model {

enum class ImageKind {
  kDisk,    // A bootable qcow2 or raw file; every VM gets an overlay over it.
  kKernel,  // A kernel and an initrd, started directly; with a base disk, an overlay over that.
};

std::string_view ToString(ImageKind kind);
std::optional<ImageKind> ParseImageKind(std::string_view text);

// Of names and aliases: 1 to 63 letters, digits, '-', '_', '.' and ':', no '.' in front.
bool IsImageName(std::string_view text);

struct Image {
  std::string id;  // Of an image of the store, in text; empty for one of the configuration.
  std::string name;
  ImageKind kind = ImageKind::kDisk;
  std::string disk_path;    // kDisk: required; kKernel: optional data disk, empty for none.
  std::string disk_format;  // "qcow2" or "raw"; empty when there is no disk.
  std::string kernel_path;  // kKernel only.
  std::string initrd_path;  // kKernel only; may be empty.
  std::string cmdline;      // kKernel only.
  std::vector<std::string> aliases;  // Other names that resolve to it at acceptance.

  bool HasDisk() const { return !disk_path.empty(); }
  bool operator==(const Image&) const = default;
};

}  // namespace vmonce::model
