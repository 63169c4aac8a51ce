// How far the files are that one host is being sent, and that no two calls send the same one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/threads.h"

namespace vmonce::hypervisor {

class LibvirtSession;

// Of a file: how much of it was sent over this session, which is kept for the rest. None at first.
struct ImageUpload {
  std::int64_t sent = 0;
  std::shared_ptr<LibvirtSession> session;
};

// Thread-safe.
class ImageUploads final {
 public:
  explicit ImageUploads(Threads& threads) : monitor_(threads.NewMonitor()) {}

  // Takes the file until Keep or End. Absent: another call has it. Uploads that nobody went on with
  // for limits::kImageUploadIdle are forgotten.
  std::optional<ImageUpload> Take(const Digest& digest, Instant now);
  // A later call goes on with it.
  void Keep(const Digest& digest, ImageUpload upload, Instant now);
  void End(const Digest& digest);
  // Of a file that another call has: what that began with.
  std::int64_t SentOf(const Digest& digest) const;

 private:
  struct Entry {
    ImageUpload upload;
    bool is_taken = false;
    Instant kept_at{};
  };

  const std::unique_ptr<Monitor> monitor_;
  std::map<Digest, Entry> entries_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
