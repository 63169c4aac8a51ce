// A directory of a test's own, removed with everything in it. For tests only.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/check.h"

namespace vmonce {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "vmonce_test.XXXXXX").string()) {
    CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace vmonce
