// The checks of what a hypervisor needs of this computer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "app/doctor.h"
#include "model/doctor_limits.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

bool Needs(const DoctorFacts& facts, HostNeeds needs) {
  return std::ranges::any_of(facts.hosts,
                             [needs](const HostFacts& host) { return host.needs == needs; });
}

bool NeedsAnything(const DoctorFacts& facts) {
  return Needs(facts, HostNeeds::kEmbedded) || Needs(facts, HostNeeds::kDaemon);
}

bool IsIn(const std::vector<std::string>& groups, std::string_view group) {
  return std::ranges::find(groups, group) != groups.end();
}

Finding Ok(std::string_view name, std::string what) {
  return {std::string(name), FindingResult::kOk, std::move(what), "", ""};
}

// A group that the user database gives to the user, and this login does not have yet.
bool IsPending(const UserFacts& user, std::string_view group) {
  return IsIn(user.known_groups, group) && !IsIn(user.session_groups, group);
}

std::string JoinGroup(const UserFacts& user, std::string_view group) {
  if (IsPending(user, group)) return fmt::format("newgrp {}", group);
  return fmt::format("sudo usermod -aG {} {}, then log in again", group, user.name);
}

bool WantsKvm(const HostFacts& host) {
  return host.needs != HostNeeds::kNothing && host.accel != "tcg";
}

Finding JudgeDaemon(const HostFacts& host, const UserFacts& user) {
  Finding finding{
      "libvirt", FindingResult::kFail,
      fmt::format("the libvirt daemon of host {} does not answer at {}", host.id, host.socket),
      std::strerror(host.connect_error), "sudo systemctl start libvirtd"};
  switch (host.connect_error) {
    case 0: return Ok("libvirt", fmt::format("the libvirt daemon of host {} listens", host.id));
    case ENOENT:
      finding.why = "there is no such socket: it is not installed, or not started";
      finding.repair = "sudo apt install libvirt-daemon-system && sudo systemctl start libvirtd";
      break;
    case EACCES:
      finding.why = fmt::format("{} has no right to it", user.name);
      finding.repair = JoinGroup(user, "libvirt");
      break;
    default: break;
  }
  return finding;
}

bool MayPass(const PathPart& part, const QemuUser& user) {
  if (part.has_acl || user.id == 0) return true;
  if (part.owner == user.id) return (part.mode & S_IXUSR) != 0;
  const bool is_member = std::ranges::find(user.groups, part.group) != user.groups.end();
  return (part.mode & (is_member ? S_IXGRP : S_IXOTH)) != 0;
}

// The file itself is libvirt's to hand over; the directories above it are not.
std::vector<Finding> JudgePath(const PathFacts& facts, const QemuUser& user) {
  for (const PathPart& part : facts.parts) {
    if (!S_ISDIR(part.mode) || MayPass(part, user)) continue;
    return {{"folders", FindingResult::kFail, fmt::format("QEMU cannot reach {}", facts.path),
             fmt::format("its user libvirt-qemu may not pass {}", part.path),
             fmt::format("sudo setfacl -m u:libvirt-qemu:x {}", part.path)}};
  }
  return {};
}

std::vector<Finding> JudgeState(const DoctorFacts& facts) {
  const StateFacts& state = facts.state;
  if (state.is_usable) return {};
  if (state.exists) {
    return {{"folders", FindingResult::kWarn,
             fmt::format("you may not write to the state directory {}", facts.state_dir),
             fmt::format("it belongs to {}, and only its owner can serve from it", state.owner),
             fmt::format("sudo -u {} vmonce doctor", state.owner)}};
  }
  return {{"folders", FindingResult::kFail,
           fmt::format("the state directory {} cannot be made", facts.state_dir),
           fmt::format("the directory above it belongs to {}", state.owner),
           fmt::format("sudo install -d -m 700 -o {} {}", facts.user.name, facts.state_dir)}};
}

}  // namespace

std::vector<Finding> CheckKvm(const DoctorFacts& facts) {
  if (!std::ranges::any_of(facts.hosts, WantsKvm)) {
    return {Ok("kvm", "KVM is not needed: no host here asks for it")};
  }
  const KvmFacts& kvm = facts.kvm;
  if (!kvm.was_asked) return {};
  if (kvm.is_usable) return {Ok("kvm", "KVM boots a machine")};
  const bool is_required =
      std::ranges::any_of(facts.hosts, [](const HostFacts& host) { return host.accel == "kvm"; });
  Finding finding{"kvm", is_required ? FindingResult::kFail : FindingResult::kWarn,
                  is_required ? "KVM cannot be used, and a host insists on it"
                              : "KVM cannot be used: machines are emulated, some ten times slower",
                  kvm.cause,
                  "on the machine below this one: echo 'options kvm_intel nested=1' | sudo tee "
                  "/etc/modprobe.d/kvm.conf; or here: accel = \"tcg\" for the host"};
  if (!kvm.has_device) {
    finding.why =
        "there is no /dev/kvm: virtualisation is off in the firmware, or not offered here";
    finding.repair = "sudo modprobe -a kvm_intel kvm_amd";
  } else if (kvm.open_error == EACCES) {
    finding.why = fmt::format("{} has no right to /dev/kvm", facts.user.name);
    finding.repair = JoinGroup(facts.user, kvm.group.empty() ? "kvm" : kvm.group);
  }
  return {std::move(finding)};
}

std::vector<Finding> CheckSession(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const char* group : {"kvm", "libvirt"}) {
    const HostNeeds needs =
        std::string_view(group) == "kvm" ? HostNeeds::kEmbedded : HostNeeds::kDaemon;
    if (!Needs(facts, needs) || !IsPending(facts.user, group)) continue;
    const bool is_needed =
        needs == HostNeeds::kDaemon ||
        std::ranges::any_of(facts.hosts, [](const HostFacts& host) { return host.accel == "kvm"; });
    findings.push_back({"session", is_needed ? FindingResult::kFail : FindingResult::kWarn,
                        fmt::format("this login does not have the rights of group {} yet", group),
                        fmt::format("{} was put into the group after logging in", facts.user.name),
                        fmt::format("newgrp {}", group)});
  }
  if (!findings.empty()) return findings;
  return {
      Ok("session", fmt::format("this login has all rights that {} was given", facts.user.name))};
}

std::vector<Finding> CheckPrograms(const DoctorFacts& facts) {
  if (!NeedsAnything(facts)) return {Ok("qemu", "QEMU is not needed on this computer")};
  if (facts.missing_programs.empty()) return {Ok("qemu", "QEMU and its tools are installed")};
  std::string packages;
  for (const std::string& program : facts.missing_programs) {
    packages += program == "qemu-img"      ? " qemu-utils"
                : program == "genisoimage" ? " genisoimage"
                                           : " qemu-system-x86";
  }
  return {{"qemu", FindingResult::kFail,
           fmt::format("not installed: {}", fmt::join(facts.missing_programs, ", ")),
           "machines, their disks and their seeds are made with them",
           "sudo apt install" + packages}};
}

std::vector<Finding> CheckLibvirt(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  if (Needs(facts, HostNeeds::kEmbedded)) {
    if (facts.has_libvirt_driver) {
      findings.push_back(Ok("libvirt", "libvirt's QEMU driver is installed"));
    } else {
      findings.push_back({"libvirt", FindingResult::kFail, "libvirt's QEMU driver is not installed",
                          fmt::format("there is no {}", facts.libvirt_driver_path),
                          "sudo apt install libvirt-daemon libvirt-daemon-driver-qemu"});
    }
  }
  for (const HostFacts& host : facts.hosts) {
    if (host.needs == HostNeeds::kDaemon) findings.push_back(JudgeDaemon(host, facts.user));
  }
  if (findings.empty()) findings.push_back(Ok("libvirt", "libvirt is not needed on this computer"));
  return findings;
}

std::vector<Finding> CheckQemuUser(const DoctorFacts& facts) {
  if (!Needs(facts, HostNeeds::kEmbedded) || !facts.user.IsRoot()) return {};
  if (facts.qemu_user) return {Ok("qemu_user", "the user libvirt-qemu exists")};
  return {
      {"qemu_user", FindingResult::kFail, "there is no user libvirt-qemu",
       "as root, libvirt's QEMU driver looks it up before anything else",
       "sudo useradd --system --user-group --no-create-home --home-dir /var/lib/libvirt --shell "
       "/usr/sbin/nologin libvirt-qemu"}};
}

std::vector<Finding> CheckRootPath(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const HostFacts& host : facts.hosts) {
    if (host.needs != HostNeeds::kEmbedded) continue;
    if (host.root.size() <= limits::kEmbedRootBytes) {
      findings.push_back(Ok("root_path", fmt::format("{} is short enough", host.root)));
      continue;
    }
    findings.push_back({"root_path", FindingResult::kFail,
                        fmt::format("the root of host {} is too long", host.id),
                        fmt::format("{} has {} bytes; the sockets beneath it allow {}", host.root,
                                    host.root.size(), limits::kEmbedRootBytes),
                        "choose a shorter [state] dir, or uri = \"qemu:///embed?root=/DIR\""});
  }
  return findings;
}

std::vector<Finding> CheckNetwork(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const HostFacts& host : facts.hosts) {
    if (!host.network) continue;
    const NetworkFacts& network = *host.network;
    const std::string on = fmt::format("virsh -c '{}'", host.uri);
    Finding finding{"network", FindingResult::kWarn,
                    fmt::format("the network {} of host {} is not active", network.name, host.id),
                    "VMs that ask for it cannot start; user-mode networking needs none",
                    fmt::format("{} net-start {}", on, network.name)};
    switch (network.state) {
      case NetworkFacts::State::kActive:
        finding = Ok("network",
                     fmt::format("the network {} of host {} is active", network.name, host.id));
        break;
      case NetworkFacts::State::kInactive: break;
      case NetworkFacts::State::kAbsent:
        finding.what = fmt::format("host {} has no network {}", host.id, network.name);
        finding.repair =
            fmt::format("{} net-define /usr/share/libvirt/networks/{}.xml", on, network.name);
        break;
      case NetworkFacts::State::kUnknown:
        finding.what = fmt::format("the network of host {} could not be looked at", host.id);
        finding.why = network.cause;
        finding.repair = fmt::format("{} net-list --all", on);
        break;
    }
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    findings.push_back(Ok("network", "user-mode networking needs nothing of this computer"));
  }
  return findings;
}

std::vector<Finding> CheckDhcp(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const HostFacts& host : facts.hosts) {
    if (!host.network || host.network->bridge.empty()) continue;
    const std::string& bridge = host.network->bridge;
    if (!facts.firewall) {
      findings.push_back({"dhcp", FindingResult::kWarn, "the firewall could not be looked at",
                          "only root may read its rules; it may drop the guests' DHCP",
                          "sudo vmonce doctor"});
      continue;
    }
    std::string chain;
    if (!DropsDhcp(*facts.firewall, bridge, chain)) {
      findings.push_back(Ok("dhcp", fmt::format("the firewall lets DHCP in from {}", bridge)));
      continue;
    }
    findings.push_back(
        {"dhcp", FindingResult::kWarn, fmt::format("the firewall may drop DHCP from {}", bridge),
         fmt::format("the chain {} drops what it does not know, and knows neither {} nor DHCP; "
                     "guests would get no address",
                     chain, bridge),
         facts.has_ufw ? fmt::format("sudo ufw allow in on {}", bridge)
                       : fmt::format("sudo nft insert rule {} iifname {} udp dport '{{ 53, 67 }}' "
                                     "accept",
                                     chain, bridge)});
  }
  return findings;
}

std::vector<Finding> CheckFolders(const DoctorFacts& facts) {
  std::vector<Finding> findings = JudgeState(facts);
  if (facts.qemu_user) {
    for (const PathFacts& path : facts.paths) {
      for (Finding& finding : JudgePath(path, *facts.qemu_user)) {
        findings.push_back(std::move(finding));
      }
    }
  }
  if (findings.empty()) {
    findings.push_back(Ok("folders", fmt::format("{} can be used", facts.state_dir)));
  }
  return findings;
}

std::vector<Finding> CheckApparmor(const DoctorFacts& facts) {
  if (!facts.has_apparmor) return {Ok("apparmor", "AppArmor is not in use")};
  if (!Needs(facts, HostNeeds::kDaemon)) {
    return {Ok("apparmor", "AppArmor does not confine machines of the embedded hypervisor")};
  }
  if (facts.has_apparmor_helper) return {Ok("apparmor", "libvirt tells AppArmor of its machines")};
  return {{"apparmor", FindingResult::kFail, "AppArmor would keep QEMU from its disks",
           "libvirt's virt-aa-helper, which tells AppArmor of them, is not installed",
           "sudo apt install libvirt-daemon-system"}};
}

std::vector<Finding> CheckDisk(const DoctorFacts& facts) {
  if (!facts.disk_free_mib) return {};
  const std::int64_t free = *facts.disk_free_mib;
  const std::string what = fmt::format("{} MiB are free at {}", free, facts.disk_path);
  if (free >= limits::kDoctorDiskWarnMib) return {Ok("disk", what)};
  const bool is_low = free < limits::kDoctorDiskFailMib;
  return {{"disk", is_low ? FindingResult::kFail : FindingResult::kWarn, what,
           is_low ? "the ledger and the disks of machines would soon not be written"
                  : "disks of machines grow as their guests write",
           fmt::format("sudo du -xh --max-depth=2 {} | sort -h | tail", facts.disk_path)}};
}

std::vector<Finding> CheckMemory(const DoctorFacts& facts) {
  if (!facts.memory_free_mib) return {};
  const std::int64_t free = *facts.memory_free_mib;
  const std::string what = fmt::format("{} MiB of memory are available", free);
  if (free >= limits::kDoctorMemoryWarnMib || !NeedsAnything(facts)) return {Ok("memory", what)};
  return {{"memory",
           free < limits::kDoctorMemoryFailMib ? FindingResult::kFail : FindingResult::kWarn, what,
           "a machine of the default size takes 512 MiB",
           "ps -eo rss,pid,comm --sort=-rss | head"}};
}

}  // namespace vmonce::app
