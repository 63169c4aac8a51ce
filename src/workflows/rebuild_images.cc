#include "workflows/rebuild_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/uuid.h"

namespace vmonce::workflows {
namespace {

// Of a file of the store, which is named by its SHA-256.
std::optional<Digest> DigestIn(const std::string& path) {
  return ParseDigest(std::string_view(path).substr(path.rfind('/') + 1));
}

// Absent: some file of it is not the store's.
std::optional<model::StoredImage> StoredForm(const model::Image& image) {
  const auto id = ParseUuid(image.id);
  if (!id) return std::nullopt;
  model::StoredImage stored;
  stored.id = *id;
  stored.name = image.name;
  stored.kind = image.kind;
  stored.disk = DigestIn(image.disk_path);
  if (stored.disk) stored.disk_format = image.disk_format;
  if (image.kind == model::ImageKind::kKernel) {
    stored.kernel = DigestIn(image.kernel_path);
    stored.initrd = DigestIn(image.initrd_path);
    stored.cmdline = image.cmdline;
  }
  const bool is_lacking = (!image.disk_path.empty() && !stored.disk) ||
                          (image.kind == model::ImageKind::kKernel && !stored.kernel) ||
                          (image.kind == model::ImageKind::kDisk && !stored.disk);
  if (is_lacking || (stored.disk && stored.disk_format.empty())) return std::nullopt;
  return stored;
}

}  // namespace

Result<std::string> RegisterImage(ports::ImageRegistry& registry, model::Image& image) {
  std::optional<model::StoredImage> stored = StoredForm(image);
  if (!stored) return std::string();
  const auto rows = registry.StoredImages();
  if (!rows) return std::unexpected(rows.error());
  if (std::ranges::find(*rows, stored->id, &model::StoredImage::id) != rows->end()) {
    return std::string();
  }
  auto added = registry.AddImage(*stored);
  if (added && added->kind == ports::ImageAddition::Kind::kNameTaken) {
    // Another content has the name by now; this one must stay for its machines.
    const Digest& content = stored->disk ? *stored->disk : *stored->kernel;
    stored->name = fmt::format("rebuilt-{}", ToHex(content).substr(0, 12));
    added = registry.AddImage(*stored);
  }
  if (!added) return std::unexpected(added.error());
  switch (added->kind) {
    case ports::ImageAddition::Kind::kAdded:
    case ports::ImageAddition::Kind::kThere: break;
    case ports::ImageAddition::Kind::kNameTaken:
    case ports::ImageAddition::Kind::kFull:
      return Fail(ErrorCode::kRefused,
                  fmt::format("the image {} cannot be registered again, and machines stand on it: "
                              "remove an image that none needs",
                              image.name));
  }
  image.id = ToString(added->image.id);
  image.name = added->image.name;
  if (added->kind == ports::ImageAddition::Kind::kThere) return std::string();
  return fmt::format("image {} is registered again", image.name);
}

}  // namespace vmonce::workflows
