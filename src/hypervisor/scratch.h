// A private directory for a moment.
#pragma once

#include <string>

#include "base/result.h"

namespace vmonce::hypervisor {

// Made with mode 0700 beneath `parent`, and removed with everything in it when this goes. After a
// kill -9 it stays until ClearScratch.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> Make(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;  // Empty when moved from.
};

// Removes what killed processes left beneath `parent`, which only they and we use. Failures are
// ignored.
void ClearScratch(const std::string& parent);

// mkdir -p with mode 0700 for what is new. Errors as base/file.h.
Status MakePrivateDirectories(const std::string& path);

}  // namespace vmonce::hypervisor
