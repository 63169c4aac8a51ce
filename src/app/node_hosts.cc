#include "app/node_hosts.h"

namespace vmonce::app {
namespace {

hypervisor::HostOptions HostOptionsOf(const HostConfig& host, const Config& config) {
  hypervisor::HostOptions options;
  options.id = host.id;
  options.uri = host.uri;
  options.accelerator =
      hypervisor::ParseAccelerator(host.accel).value_or(hypervisor::Accelerator::kAuto);
  options.pool = host.pool;
  options.pool_path = host.pool_path;
  options.simulated_latency = host.latency;
  options.console_bytes = std::int64_t{config.limits.console_mib} << 20;
  return options;
}

}  // namespace

Result<HostDoors> MakeHostDoors(const Config& config, const NodeDoors& doors,
                                const hypervisor::CallObserver& on_call) {
  HostDoors made;
  // Shared by the hosts: it ends with the last call to any of them.
  const auto events = std::make_shared<hypervisor::EventLoop>(doors.threads);
  for (const HostConfig& host : config.hosts) {
    hypervisor::HostOptions options = HostOptionsOf(host, config);
    options.events = events;
    options.on_call = on_call;
    auto door =
        hypervisor::NewHypervisor(options, doors.clock, doors.threads, doors.random, doors.logger);
    if (!door) return Context("host " + host.id.value, door.error());
    made.push_back(std::move(*door));
  }
  return made;
}

workflows::HostPlan HostPlanOf(const HostConfig& host) {
  const workflows::CapacityPlan capacity{host.vms, host.cpus, host.memory_mib, host.disk_gib};
  return {host.id, host.uri, capacity, host.forward_ports, host.forward_address, host.networks};
}

}  // namespace vmonce::app
