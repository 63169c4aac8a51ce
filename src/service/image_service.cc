#include "service/image_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/uuid.h"
#include "model/image_limits.h"
#include "service/queries.h"

namespace vmonce::service {
namespace {

namespace limits = model::limits;

std::unexpected<model::Problem> Refuse(std::string code, std::string detail,
                                       std::string pointer = "") {
  model::Problem problem;
  problem.code = std::move(code);
  problem.detail = std::move(detail);
  if (!pointer.empty()) problem.fields.push_back({std::move(pointer), problem.detail});
  return std::unexpected(std::move(problem));
}

// What the store says of a file.
std::unexpected<model::Problem> StoreFailed(const Error& error, const std::string& pointer) {
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kRefused: return Refuse("image_invalid", error.detail, pointer);
    case ErrorCode::kNotFound:
      return Refuse("image_invalid", error.detail + ": send its content first", pointer);
    case ErrorCode::kConflict:
    case ErrorCode::kUnavailable:
    case ErrorCode::kUnknown:
    case ErrorCode::kFenced:
    case ErrorCode::kInternal: break;
  }
  auto problem = Refuse("image_unavailable", error.detail + ". Nothing was added.");
  problem.error().retry_after = std::chrono::seconds(2);
  return problem;
}

std::vector<Digest> FilesOf(const AddImageRequest& request) {
  std::vector<Digest> files;
  for (const auto& file : {request.disk, request.kernel, request.initrd}) {
    if (file) files.push_back(*file);
  }
  return files;
}

}  // namespace

ImageService::ImageService(const ImageParts& parts)
    : parts_(parts), monitor_(parts.threads.NewMonitor()) {}

Status ImageService::Load() {
  MonitorLock lock(*monitor_);
  return Reload();
}

Status ImageService::Reload() {
  const auto rows = parts_.registry.StoredImages();
  if (!rows) return std::unexpected(rows.error());
  std::vector<model::Image> images;
  for (const model::StoredImage& row : *rows) {
    model::Image image;
    image.id = ToString(row.id);
    image.name = row.name;
    image.kind = row.kind;
    if (row.disk) image.disk_path = parts_.store.PathOf(*row.disk);
    image.disk_format = row.disk_format;
    if (row.kernel) image.kernel_path = parts_.store.PathOf(*row.kernel);
    if (row.initrd) image.initrd_path = parts_.store.PathOf(*row.initrd);
    image.cmdline = row.cmdline;
    image.aliases = row.aliases;
    images.push_back(std::move(image));
  }
  parts_.catalog.SetStored(images);
  return {};
}

std::expected<std::vector<model::StoredImage>, model::Problem> ImageService::List() const {
  auto rows = parts_.registry.StoredImages();
  if (!rows) return std::unexpected(LedgerProblem(rows.error()));
  return *std::move(rows);
}

std::expected<ports::ImageProgress, model::Problem> ImageService::Write(
    const ports::ImagePart& part) {
  const auto progress = parts_.store.Write(part);
  if (!progress) return StoreFailed(progress.error(), "");
  return *progress;
}

void ImageService::Abandon(const Digest& digest) { parts_.store.Abandon(digest); }

std::expected<AddedImage, model::Problem> ImageService::Add(const AddImageRequest& request) {
  const auto is_taken = [&](const std::string& name) { return parts_.catalog.IsConfigured(name); };
  std::vector<std::string> names = request.aliases;
  names.push_back(request.name);
  if (const auto taken = std::ranges::find_if(names, is_taken); taken != names.end()) {
    return Refuse("image_exists", fmt::format("The configuration has an image '{}'; choose another "
                                              "name. Nothing was added.",
                                              *taken));
  }
  MonitorLock lock(*monitor_);
  auto image = Examine(request);
  if (!image) {
    // What is no image is of no use to anybody.
    if (image.error().code == "image_invalid") DropFiles(FilesOf(request));
    return std::unexpected(std::move(image.error()));
  }
  auto added = parts_.registry.AddImage(*image);
  if (const Status loaded = Reload(); !loaded)
    return std::unexpected(LedgerProblem(loaded.error()));
  if (!added) return std::unexpected(LedgerProblem(added.error()));
  switch (added->kind) {
    case ports::ImageAddition::Kind::kNameTaken:
      return Refuse("image_exists",
                    fmt::format("'{}' is the name or alias of another image. Choose another name, "
                                "or remove that image. Nothing was added.",
                                added->in_the_way));
    case ports::ImageAddition::Kind::kFull:
      return Refuse("image_exists",
                    fmt::format("There are {} images, which is the most. Remove one "
                                "first. Nothing was added.",
                                limits::kStoredImages));
    case ports::ImageAddition::Kind::kAdded:
    case ports::ImageAddition::Kind::kThere: break;
  }
  const bool is_new = added->kind == ports::ImageAddition::Kind::kAdded;
  if (is_new) parts_.logger.Info("image_added", {{"image", added->image.name}});
  return AddedImage{std::move(added->image), is_new};
}

std::expected<model::StoredImage, model::Problem> ImageService::Examine(
    const AddImageRequest& request) {
  model::StoredImage image;
  image.id = NewUuidV7(parts_.clock, parts_.random);
  image.name = request.name;
  image.kind = request.kind;
  image.disk = request.disk;
  image.kernel = request.kernel;
  image.initrd = request.initrd;
  image.cmdline = request.cmdline;
  image.aliases = request.aliases;
  if (image.disk) {
    const auto facts = parts_.store.InspectDisk(*image.disk);
    if (!facts) return StoreFailed(facts.error(), "/disk");
    image.disk_format = facts->format;
    if (!request.disk_format.empty() && request.disk_format != facts->format) {
      return Refuse("image_invalid",
                    fmt::format("the file is {}, not {}", facts->format, request.disk_format),
                    "/disk_format");
    }
    const bool is_booted = image.kind == model::ImageKind::kDisk && facts->format == "raw";
    const Status boots = is_booted ? parts_.store.CheckBootable(*image.disk) : Status();
    if (!boots) return StoreFailed(boots.error(), "/disk");
  }
  if (image.kernel) {
    const Status kernel = parts_.store.CheckKernel(*image.kernel);
    if (!kernel) return StoreFailed(kernel.error(), "/kernel");
  }
  for (const Digest& file : image.Files()) {
    const auto size = parts_.store.SizeOf(file);
    if (!size) return StoreFailed(size.error(), image.initrd == file ? "/initrd" : "");
    if (file != image.disk && *size > limits::kBootFileBytes) {
      return Refuse("image_invalid", "a kernel and an initrd have at most 2 GiB",
                    image.initrd == file ? "/initrd" : "/kernel");
    }
    image.bytes += *size;
  }
  return image;
}

std::expected<void, model::Problem> ImageService::Remove(const std::string& name) {
  if (parts_.catalog.IsConfigured(name)) {
    return Refuse("image_in_use", fmt::format("'{}' is an image of the configuration file; take it "
                                              "out there. Nothing was removed.",
                                              name));
  }
  MonitorLock lock(*monitor_);
  const auto removal = parts_.registry.RemoveImage(name);
  if (const Status loaded = Reload(); !loaded)
    return std::unexpected(LedgerProblem(loaded.error()));
  if (!removal) return std::unexpected(LedgerProblem(removal.error()));
  switch (removal->kind) {
    case ports::ImageRemoval::Kind::kAbsent:
      return Refuse("image_not_found", fmt::format("There is no image '{}' in the store; an alias "
                                                   "is removed with its image.",
                                                   name));
    case ports::ImageRemoval::Kind::kInUse:
      return Refuse(
          "image_in_use",
          fmt::format("{} VM{} on '{}': {} disk would be lost. Delete {} first (VMs that "
                      "failed, too). Nothing was removed.",
                      removal->users, removal->users == 1 ? " stands" : "s stand", name,
                      removal->users == 1 ? "its" : "their", removal->users == 1 ? "it" : "them"));
    case ports::ImageRemoval::Kind::kRemoved: break;
  }
  parts_.logger.Info("image_removed", {{"image", name}});
  DropFiles(removal->image.Files());
  return {};
}

void ImageService::DropFiles(const std::vector<Digest>& files) {
  const auto wanted = WantedFiles();
  Status gone = wanted ? Status() : std::unexpected(wanted.error());
  for (const Digest& file : files) {
    if (!gone) break;
    if (std::ranges::find(*wanted, file) == wanted->end()) gone = parts_.store.Remove(file);
  }
  // What cannot be removed now goes with a later sweep.
  if (!gone) parts_.logger.Warning("image_files_kept", {{"cause", gone.error().detail}});
}

Result<std::vector<Digest>> ImageService::WantedFiles() const {
  const auto rows = parts_.registry.StoredImages();
  if (!rows) return std::unexpected(rows.error());
  std::vector<Digest> wanted;
  for (const model::StoredImage& row : *rows) {
    for (const Digest& file : row.Files()) wanted.push_back(file);
  }
  return wanted;
}

void ImageService::Sweep() {
  MonitorLock lock(*monitor_);
  const auto wanted = WantedFiles();
  const Result<int> gone = wanted ? parts_.store.Sweep(*wanted, limits::kImageFileIdle)
                                  : Result<int>(std::unexpected(wanted.error()));
  if (!gone) parts_.logger.Warning("image_files_kept", {{"cause", gone.error().detail}});
  if (gone && *gone > 0) parts_.logger.Info("image_files_removed", {{"files", *gone}});
}

}  // namespace vmonce::service
