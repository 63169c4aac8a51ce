// What faces call for the image store: sending files, adding images, removing them. Every call
// blocks, and every call may be repeated: a file is named by its content, an image that is there
// already is found again, and what was removed stays removed.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/threads.h"
#include "model/problem.h"
#include "model/stored_image.h"
#include "ports/image_registry.h"
#include "ports/image_store.h"
#include "service/images.h"

namespace vmonce::service {

struct AddImageRequest {
  std::string name;
  model::ImageKind kind = model::ImageKind::kDisk;
  std::optional<Digest> disk;
  std::string disk_format;  // Empty: as the file's header says; else it must be what that says.
  std::optional<Digest> kernel;
  std::optional<Digest> initrd;
  std::string cmdline;
  std::vector<std::string> aliases;
};

struct AddedImage {
  model::StoredImage image;
  bool is_new = false;
};

struct ImageParts {
  // All outlive the service.
  ports::ImageRegistry& registry;
  ports::ImageStore& store;
  ImageCatalog& catalog;
  Clock& clock;
  Random& random;
  Threads& threads;
  Logger& logger;
};

// Thread-safe.
class ImageService {
 public:
  explicit ImageService(const ImageParts& parts);

  // Brings the catalog up to what the ledger says. To be called once before the first create.
  Status Load();

  // The listing; sorted by name.
  std::expected<std::vector<model::StoredImage>, model::Problem> List() const;

  std::expected<ports::ImageProgress, model::Problem> Write(const ports::ImagePart& part);
  void Abandon(const Digest& digest);

  // Files of what turns out to be no image are dropped.
  std::expected<AddedImage, model::Problem> Add(const AddImageRequest& request);
  // Refused while a VM that is not deleted was made of it. The files that no other image has go.
  std::expected<void, model::Problem> Remove(const std::string& name);

  // Removes files that no image names, and unfinished uploads.
  void Sweep();

 private:
  std::expected<model::StoredImage, model::Problem> Examine(const AddImageRequest& request);
  // After a change of the registry; also after one whose outcome is unknown.
  Status Reload() REQUIRES(*monitor_);
  // All files that an image names.
  Result<std::vector<Digest>> WantedFiles() const;
  // Removes those that no image names.
  void DropFiles(const std::vector<Digest>& files) REQUIRES(*monitor_);

  const ImageParts parts_;
  // Held by whatever needs files and rows to agree: adding, removing and sweeping take turns.
  const std::unique_ptr<Monitor> monitor_;
};

}  // namespace vmonce::service
