// The directory of an embedded QEMU host: one process at a time, libvirt's settings, the marker,
// and what libvirt might not know of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/host.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

class EmbeddedRoot final {
 public:
  // Makes the directory (mode 0700) and takes it. kUnavailable: another process, or another host of
  // this one, has it. It is given back when this object goes or the process dies.
  static Result<std::unique_ptr<EmbeddedRoot>> Open(const std::string& root);

  // `lock` is the held lock of the root.
  EmbeddedRoot(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  Result<std::vector<model::HostMarker>> ReadMarkers() const;
  // Answers whether it wrote the marker; kConflict as Hypervisor::Connect says.
  Result<bool> CheckMarker(const model::HostMarker& marker, ports::MarkerPolicy policy);

  const std::string& path() const { return path_; }
  std::string MarkerPath() const { return path_ + "/vmonce.marker"; }
  std::string DisksPath() const { return path_ + "/disks"; }
  std::string ScratchPath() const { return path_ + "/scratch"; }
  std::string ConsolesPath() const { return path_ + "/consoles"; }

 private:
  const std::string path_;
  const UniqueFd lock_;
};

// A QEMU process of that domain name runs on this machine, whether libvirt knows of it or not.
// kUnavailable: the processes cannot be listed.
Result<bool> HasQemuProcess(const std::string& domain);

}  // namespace vmonce::hypervisor
