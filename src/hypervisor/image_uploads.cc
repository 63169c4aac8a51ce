#include "hypervisor/image_uploads.h"

#include <utility>
#include <vector>

#include "model/image_limits.h"

namespace vmonce::hypervisor {

std::optional<ImageUpload> ImageUploads::Take(const Digest& digest, Instant now) {
  std::vector<ImageUpload> forgotten;  // Their sessions go back without the lock.
  MonitorLock lock(*monitor_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool is_idle =
        !entry->second.is_taken && now - entry->second.kept_at >= model::limits::kImageUploadIdle;
    if (is_idle) forgotten.push_back(std::move(entry->second.upload));
    entry = is_idle ? entries_.erase(entry) : std::next(entry);
  }
  Entry& entry = entries_[digest];
  if (std::exchange(entry.is_taken, true)) return std::nullopt;
  return entry.upload;
}

void ImageUploads::Keep(const Digest& digest, ImageUpload upload, Instant now) {
  MonitorLock lock(*monitor_);
  entries_[digest] = {.upload = std::move(upload), .is_taken = false, .kept_at = now};
}

void ImageUploads::End(const Digest& digest) {
  ImageUpload ended;
  MonitorLock lock(*monitor_);
  const auto found = entries_.find(digest);
  if (found == entries_.end()) return;
  ended = std::move(found->second.upload);
  entries_.erase(found);
}

std::int64_t ImageUploads::SentOf(const Digest& digest) const {
  MonitorLock lock(*monitor_);
  const auto found = entries_.find(digest);
  return found == entries_.end() ? 0 : found->second.upload.sent;
}

}  // namespace vmonce::hypervisor
