// A libvirt daemon of the tests' own: it stands for another machine. Its files, sockets and
// machines are below one directory; in a mount namespace of its own it sees that directory where
// libvirt's are, so that nothing of this machine's libvirt is touched.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/system.h"
#include "base/temp_dir.h"

namespace vmonce::hypervisor {

class PrivateLibvirtd final {
 public:
  // Starts it and waits until it answers.
  PrivateLibvirtd();
  // Ends its machines, then itself.
  ~PrivateLibvirtd();

  // As one names a daemon of this machine, and of another one.
  std::string LocalUri() const;
  std::string RemoteUri() const;
  std::string PoolPath() const { return dir_.path() + "/pool"; }
  const TempDir& dir() const { return dir_; }

  // kill -9; its machines go on.
  void Kill();
  // Again, on what it left.
  void Start();
  void Freeze();
  void Thaw();

 private:
  bool Answers() const;

  const std::unique_ptr<Clock> clock_ = NewSystemClock();
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  TempDir dir_;
  int port_ = 0;  // Of its TCP socket on 127.0.0.1.
  pid_t pid_ = 0;
};

}  // namespace vmonce::hypervisor
