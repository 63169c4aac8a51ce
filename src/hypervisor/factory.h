// Makes the hypervisor of one configured host: the raw adapter that its URI asks for, behind
// bounded threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/result.h"
#include "base/threads.h"
#include "hypervisor/event_loop.h"
#include "hypervisor/host_threads.h"
#include "hypervisor/kvm_probe.h"
#include "model/ids.h"
#include "model/limits.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

struct HostOptions {
  model::HostId id;
  // "qemu:///embed?root=DIR" (no daemon; at most one root in a process), "qemu:///system",
  // "qemu+unix:///system?socket=PATH", "qemu+ssh://...", "qemu+tls://...", "test:///default", or
  // "simulated:" and "simulated:DIR" (machines that are made up, kept in memory or in DIR).
  std::string uri;
  Accelerator accelerator = Accelerator::kAuto;
  // Daemons only: the storage pool of our disks and seeds. It is made as a directory pool at
  // `pool_path` when it does not exist; with an empty path it must exist.
  std::string pool = "vmonce";
  std::string pool_path;
  // Daemons only: a private directory for seeds on their way to the pool. Empty: the system's.
  std::string scratch_path;
  std::optional<Milliseconds> settle_time;  // Instead of the URI's own.
  Milliseconds simulated_latency{0};        // "simulated:" only: of every call.
  // Embedded only: beyond it a guest's oldest console output goes. (Daemons have virtlogd for
  // that.)
  std::int64_t console_bytes = model::limits::kConsoleFileBytes;
  CallObserver on_call;  // May be empty.
  // Of the whole process: libvirt has one, and two threads must not run it. Null only where the
  // process has no other libvirt host.
  std::shared_ptr<EventLoop> events;
};

// Connects to nothing yet. kInvalid, with the repair in the detail, for a URI of no known form, a
// root that is too long for the sockets beneath it, or options that contradict each other.
// All references outlive the hypervisor, and also every call that it gave up (see HostThreads).
// To be called before other threads run: libvirt reads the environment, which is set here so that
// it does not write on stderr.
Result<std::unique_ptr<HostThreads>> NewHypervisor(const HostOptions& options, Clock& clock,
                                                   Threads& threads, Random& random,
                                                   Logger& logger);

}  // namespace vmonce::hypervisor
