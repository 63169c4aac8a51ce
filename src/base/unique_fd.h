// Owns one file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace vmonce {

class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes what an opening call returned; negative means none.
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Close(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool IsOpen() const { return fd_ >= 0; }

  // Errors of close(2) are ignored: whoever must know that data arrived has called fsync before.
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace vmonce
