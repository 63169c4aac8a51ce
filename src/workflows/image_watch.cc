#include "workflows/image_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace vmonce::workflows {

ImageWatch::ImageWatch(ports::ImageFileRecords& records, Look look, Threads& threads,
                       Logger& logger, const std::vector<model::Image>& configured)
    : records_(records), look_(std::move(look)), logger_(logger), monitor_(threads.NewMonitor()) {
  for (const model::Image& image : configured) {
    if (image.HasDisk()) paths_.push_back(image.disk_path);
  }
  std::ranges::sort(paths_);
  const auto twice = std::ranges::unique(paths_);
  paths_.erase(twice.begin(), twice.end());
}

Status ImageWatch::BeforeOverlay(const model::Image& image) {
  // A file of the store never changes: it is named by what it holds.
  if (!image.id.empty() || !image.HasDisk()) return {};
  const Result<std::optional<FileIdentity>> now = look_(image.disk_path);
  // What is not there, or not to be seen from here, is the host's to tell.
  if (!now || !now->has_value()) return {};
  const Result<ports::FileVerdict> verdict = records_.KeepFile(image.disk_path, **now);
  if (!verdict) return std::unexpected(verdict.error());
  if (!verdict->is_changed()) return {};
  Note(image.disk_path, verdict->users);
  return Fail(ErrorCode::kConflict, TellImageChanged(image.disk_path, verdict->users));
}

void ImageWatch::Check() {
  for (const std::string& path : paths_) {
    const Result<std::optional<FileIdentity>> now = look_(path);
    if (!now) continue;
    const Result<ports::FileVerdict> verdict = records_.CheckFile(path, *now);
    if (verdict) Note(path, verdict->users);
  }
}

void ImageWatch::Note(const std::string& path, std::int64_t users) {
  bool is_new = false;
  bool is_over = false;
  {
    MonitorLock lock(*monitor_);
    const bool was_changed = changed_.contains(path);
    is_new = users > 0 && !was_changed;
    is_over = users == 0 && was_changed;
    if (users > 0) changed_[path] = users;
    if (is_over) changed_.erase(path);
  }
  if (is_new) {
    logger_.Error("image_changed", {{"path", path},
                                    {"vms", users},
                                    {"effect",
                                     "their disks may be damaged; no more are made "
                                     "from it"}});
  }
  if (is_over) logger_.Info("image_restored", {{"path", path}});
}

std::map<std::string, std::int64_t> ImageWatch::Changed() const {
  MonitorLock lock(*monitor_);
  return changed_;
}

std::string TellImageChanged(const std::string& path, std::int64_t users) {
  return fmt::format(
      "The file {} is not the one that the disks of {} VM{} were made over: it was changed or "
      "replaced, or is gone. Their disks may be damaged, and no more are made from it. Put the old "
      "file back in its place (cp -p); what is there now belongs under a path and a name of its "
      "own.",
      path, users, users == 1 ? "" : "s");
}

}  // namespace vmonce::workflows
