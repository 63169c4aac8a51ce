#include "hypervisor/factory.h"

#include <fmt/format.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdlib.h>
#include <unistd.h>

#include "hypervisor/host_uri.h"
#include "hypervisor/libvirt_driver.h"
#include "hypervisor/scratch.h"
#include "hypervisor/simulated_driver.h"

namespace vmonce::hypervisor {
namespace {

Result<std::shared_ptr<ports::Hypervisor>> NewSimulated(const HostOptions& options,
                                                        const HostUri& uri, Clock& clock,
                                                        Threads& threads) {
  auto host = SimulatedHost::Open({.directory = uri.directory}, clock, threads);
  if (!host) return std::unexpected(host.error());
  return std::make_shared<SimulatedDriver>(
      *std::move(host), std::make_shared<NoFaults>(),
      SimulatedDriverOptions{
          .latency = options.simulated_latency,
          .settle_time = options.settle_time.value_or(DefaultSettleTime(uri.kind))},
      clock, threads);
}

// Other programs' seeds may be in the system's directory: only one of our own is swept.
Result<std::string> PrepareScratch(const HostOptions& options) {
  if (options.scratch_path.empty()) return std::string("/tmp");
  const std::string path = fmt::format("{}/{}", options.scratch_path, options.id.value);
  if (auto made = MakePrivateDirectories(path); !made) return std::unexpected(made.error());
  ClearScratch(path);
  return path;
}

// libvirt reads the environment once, at its first call. What it would say on stderr is told by the
// calls that fail; a log that an operator has set up stays. Without root's rights it keeps some
// files in the user's own directories, whatever the root is: a service account often has none that
// can be written.
void PrepareLibvirt(const HostUri& uri) {
  // tidy: allow environment: libvirt takes its log's place from nowhere else
  setenv("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null", 0);
  if (uri.kind != HostKind::kEmbedded || geteuid() == 0) return;
  for (const auto& [variable, folder] : {std::pair{"XDG_CACHE_HOME", "cache"},
                                         {"XDG_CONFIG_HOME", "config"},
                                         {"XDG_DATA_HOME", "data"},
                                         {"XDG_RUNTIME_DIR", "runtime"}}) {
    // tidy: allow environment: libvirt takes these directories from nowhere else
    setenv(variable, fmt::format("{}/user/{}", uri.directory, folder).c_str(), 1);
  }
}

Result<std::shared_ptr<ports::Hypervisor>> NewLibvirt(const HostOptions& options,
                                                      const HostUri& uri, Clock& clock,
                                                      Threads& threads, Logger& logger) {
  PrepareLibvirt(uri);
  LibvirtOptions libvirt{.uri = uri,
                         .accelerator = options.accelerator,
                         .pool = options.pool,
                         .pool_path = options.pool_path,
                         .settle_time = options.settle_time.value_or(DefaultSettleTime(uri.kind)),
                         .console_bytes = options.console_bytes,
                         .events = options.events};
  if (uri.kind == HostKind::kTest) libvirt.pool = "default-pool";  // The only one there.
  if (uri.kind != HostKind::kEmbedded) {
    if (libvirt.pool.empty()) {
      return Fail(ErrorCode::kInvalid, fmt::format("host {}: a pool is needed", options.id.value));
    }
    auto scratch = PrepareScratch(options);
    if (!scratch) return std::unexpected(scratch.error());
    libvirt.scratch = *std::move(scratch);
  }
  return std::make_shared<LibvirtDriver>(std::move(libvirt), clock, threads, logger);
}

}  // namespace

Result<std::unique_ptr<HostThreads>> NewHypervisor(const HostOptions& options, Clock& clock,
                                                   Threads& threads, Random&, Logger& logger) {
  auto uri = ParseHostUri(options.uri);
  if (!uri) return Context(fmt::format("host {}", options.id.value), uri.error());
  auto raw = uri->kind == HostKind::kSimulated ? NewSimulated(options, *uri, clock, threads)
                                               : NewLibvirt(options, *uri, clock, threads, logger);
  if (!raw) return Context(fmt::format("host {}", options.id.value), raw.error());
  return std::make_unique<HostThreads>(
      *std::move(raw), HostThreadsOptions{.host = options.id.value, .on_call = options.on_call},
      clock, threads, logger);
}

}  // namespace vmonce::hypervisor
