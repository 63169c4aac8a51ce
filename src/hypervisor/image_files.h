// The image store as a directory: "<sha256>" for each file (mode 0444), and what is being sent
// beneath incoming/.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/threads.h"
#include "ports/image_store.h"

namespace vmonce::hypervisor {

// What of the disk stays free, whatever is sent.
struct ImageFilesOptions {
  std::string directory;  // Absolute; made with mode 0700 when it is not there.
  std::int64_t spare_bytes = 0;
};

class FileImageStore final : public ports::ImageStore {
 public:
  // What an earlier process left of unfinished uploads is removed. One process has a directory.
  static Result<std::unique_ptr<FileImageStore>> Open(ImageFilesOptions options, Clock& clock,
                                                      Threads& threads);
  FileImageStore(ImageFilesOptions options, Clock& clock, Threads& threads);
  ~FileImageStore() override;

  Result<ports::ImageProgress> Write(const ports::ImagePart& part) override;
  void Abandon(const Digest& digest) override;
  Result<std::int64_t> SizeOf(const Digest& digest) override;
  Result<ports::DiskFacts> InspectDisk(const Digest& digest) override;
  Status CheckBootable(const Digest& digest) override;
  Status CheckKernel(const Digest& digest) override;
  std::string PathOf(const Digest& digest) const override;
  Status Remove(const Digest& digest) override;
  Result<int> Sweep(std::span<const Digest> wanted, Milliseconds age) override;

 private:
  struct Upload;
  using UploadPointer = std::shared_ptr<Upload>;  // Shared by the list and the call that writes.

  std::string TemporaryOf(const Digest& digest) const;
  // Taken, so that no other call has it. kUnavailable: another call has it, or there is no room.
  Result<UploadPointer> Take(const ports::ImagePart& part);
  void GiveBack(const UploadPointer& upload, bool is_over);
  Result<UploadPointer> Begin(const ports::ImagePart& part) REQUIRES(*monitor_);
  Status Append(Upload& upload, std::string_view bytes);
  Status Publish(Upload& upload);
  Result<std::string> HeaderOf(const Digest& digest);
  void DropIdle() REQUIRES(*monitor_);

  const ImageFilesOptions options_;
  Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  std::list<UploadPointer> uploads_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::hypervisor
