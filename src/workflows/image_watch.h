// Notices that a file of the configuration changed under the disks that were made over it, which
// damages them: new VMs are not made from it until it is back. Nothing is done to those that stand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "base/log.h"
#include "base/threads.h"
#include "model/image.h"
#include "model/vm.h"
#include "ports/image_registry.h"

namespace vmonce::workflows {

// Thread-safe. What is borrowed outlives it.
class ImageWatch {
 public:
  using Look = std::function<Result<std::optional<FileIdentity>>(const std::string& path)>;

  ImageWatch(ports::ImageFileRecords& records, Look look, Threads& threads, Logger& logger,
             const std::vector<model::Image>& configured);

  // To be asked before every overlay over a file of the configuration: the first one decides what
  // the file is. kConflict: it is another one now. What cannot be looked at is no matter of this.
  Status BeforeOverlay(const model::Image& image);

  // Looks at every disk of the configuration, and logs what has changed since the last time. By
  // period, and once before the first create.
  void Check();
  // As of the last Check(): path → how many VMs' disks were made over what was there before.
  std::map<std::string, std::int64_t> Changed() const;

 private:
  void Note(const std::string& path, std::int64_t users);

  ports::ImageFileRecords& records_;
  const Look look_;
  Logger& logger_;
  std::vector<std::string> paths_;
  const std::unique_ptr<Monitor> monitor_;
  std::map<std::string, std::int64_t> changed_ GUARDED_BY(*monitor_);
};

// What is told of a file that changed, as whole sentences.
std::string TellImageChanged(const std::string& path, std::int64_t users);

}  // namespace vmonce::workflows
