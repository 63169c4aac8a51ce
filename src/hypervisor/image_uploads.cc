#include "hypervisor/image_uploads.h"

namespace vmonce::hypervisor {

std::optional<std::int64_t> ImageUploads::Take(const Digest& digest,
                                               const std::shared_ptr<const void>& connection) {
  MonitorLock lock(*monitor_);
  Upload& upload = uploads_[digest];
  if (upload.is_taken) return std::nullopt;
  if (upload.connection.lock() != connection) upload.sent = 0;
  upload.connection = connection;
  upload.is_taken = true;
  return upload.sent;
}

void ImageUploads::GiveBack(const Digest& digest, std::int64_t sent) {
  MonitorLock lock(*monitor_);
  if (sent == 0) {
    uploads_.erase(digest);
    return;
  }
  Upload& upload = uploads_[digest];
  upload.sent = sent;
  upload.is_taken = false;
}

std::int64_t ImageUploads::SentOf(const Digest& digest) const {
  MonitorLock lock(*monitor_);
  const auto found = uploads_.find(digest);
  return found == uploads_.end() ? 0 : found->second.sent;
}

}  // namespace vmonce::hypervisor
