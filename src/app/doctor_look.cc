#include "app/doctor_look.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/process.h"
#include "base/unique_fd.h"
#include "hypervisor/host_uri.h"
#include "hypervisor/kvm_probe.h"
#include "model/doctor_limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using hypervisor::HostKind;

// Where Debian keeps them.
constexpr const char* kLibvirtDriver =
    "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so";
constexpr const char* kApparmorHelper = "/usr/lib/libvirt/virt-aa-helper";
constexpr const char* kLibvirtSocket = "/run/libvirt/libvirt-sock";
constexpr const char* kQemuUser = "libvirt-qemu";

std::string GroupName(gid_t id) {
  const group* found = getgrgid(id);
  return found == nullptr ? std::to_string(id) : found->gr_name;
}

std::string UserName(uid_t id) {
  const passwd* found = getpwuid(id);
  return found == nullptr ? std::to_string(id) : found->pw_name;
}

std::vector<gid_t> GroupsOf(const passwd& user) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count);
  }
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return groups;
}

UserFacts LookAtUser() {
  UserFacts user;
  user.id = geteuid();
  user.name = UserName(user.id);
  std::vector<gid_t> mine(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
  if (getgroups(static_cast<int>(mine.size()), mine.data()) < 0) mine.clear();
  mine.push_back(getegid());
  for (const gid_t id : mine) user.session_groups.push_back(GroupName(id));
  if (const passwd* known = getpwuid(user.id)) {
    for (const gid_t id : GroupsOf(*known)) user.known_groups.push_back(GroupName(id));
  }
  return user;
}

std::optional<QemuUser> LookAtQemuUser() {
  const passwd* found = getpwnam(kQemuUser);
  if (found == nullptr) return std::nullopt;
  const uid_t id = found->pw_uid;
  return QemuUser{id, GroupsOf(*found)};
}

// The errno, or 0 when somebody listens.
int ConnectError(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Not waiting: a daemon whose queue is full says EAGAIN.
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.IsOpen()) return errno;
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  return connect(fd.get(), plain, sizeof(address)) == 0 ? 0 : errno;
}

// The word after "NAME:" of a line, as virsh prints in the C locale.
std::string FieldOf(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(name)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size());
    return begin == std::string_view::npos ? "" : std::string(line.substr(begin));
  }
  return "";
}

NetworkFacts LookAtNetwork(const std::string& uri) {
  NetworkFacts network;
  const auto virsh = [&uri](std::vector<std::string> more) {
    std::vector<std::string> argv = {"virsh", "-q", "-r", "-c", uri};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProcess({.argv = std::move(argv), .timeout = limits::kDoctorTool});
  };
  // The list first: a name that is not in it is absent, which an error's text could not prove.
  const auto list = virsh({"net-list", "--all", "--name"});
  if (!list || !list->Succeeded()) {
    network.cause = list ? list->Describe() : list.error().detail;
    return network;
  }
  if (!("\n" + list->stdout_text).contains("\n" + network.name + "\n")) {
    network.state = NetworkFacts::State::kAbsent;
    return network;
  }
  const auto info = virsh({"net-info", network.name});
  if (!info || !info->Succeeded()) {
    network.cause = info ? info->Describe() : info.error().detail;
    return network;
  }
  network.bridge = FieldOf(info->stdout_text, "Bridge:");
  network.state = FieldOf(info->stdout_text, "Active:") == "yes" ? NetworkFacts::State::kActive
                                                                 : NetworkFacts::State::kInactive;
  return network;
}

// "" when the URI names none.
std::string SocketOf(const std::string& uri) {
  constexpr std::string_view kSocket = "socket=";
  const std::size_t at = uri.find(kSocket);
  if (at == std::string::npos) return kLibvirtSocket;
  const std::size_t end = uri.find('&', at);
  return uri.substr(at + kSocket.size(),
                    end == std::string::npos ? end : end - at - kSocket.size());
}

HostFacts LookAtHost(const HostConfig& config) {
  HostFacts host;
  host.id = config.id.value;
  host.uri = config.uri;
  host.accel = config.accel;
  const auto uri = hypervisor::ParseHostUri(config.uri);
  if (!uri) {
    // Too long a root is the one mistake that the configuration does not tell.
    constexpr std::string_view kRoot = "qemu:///embed?root=";
    if (!config.uri.starts_with(kRoot)) return host;
    host.needs = HostNeeds::kEmbedded;
    host.root = config.uri.substr(kRoot.size());
    return host;
  }
  if (uri->kind == HostKind::kEmbedded) {
    host.needs = HostNeeds::kEmbedded;
    host.root = uri->directory;
  } else if (uri->kind == HostKind::kLocalDaemon) {
    host.needs = HostNeeds::kDaemon;
    host.pool_path = config.pool_path;
    host.socket = SocketOf(config.uri);
    host.connect_error = ConnectError(host.socket);
    if (host.connect_error == 0) host.network = LookAtNetwork(config.uri);
  }
  return host;
}

KvmFacts LookAtKvm() {
  KvmFacts kvm;
  kvm.was_asked = true;
  struct stat status{};
  kvm.has_device = stat("/dev/kvm", &status) == 0;
  if (!kvm.has_device) return kvm;
  kvm.group = GroupName(status.st_gid);
  const UniqueFd device(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!device.IsOpen()) {
    kvm.open_error = errno;
    kvm.cause = fmt::format("/dev/kvm: {}", std::strerror(kvm.open_error));
    return kvm;
  }
  hypervisor::KvmProbe probe = hypervisor::ProbeKvm(limits::kDoctorKvm);
  kvm.is_usable = probe.is_usable;
  kvm.cause = std::move(probe.cause);
  return kvm;
}

std::vector<std::string> MissingPrograms() {
  std::vector<std::string> missing;
  for (const char* program : {"qemu-system-x86_64", "qemu-img", "genisoimage"}) {
    const std::string_view path = kProcessPath;
    bool is_found = false;
    for (std::size_t begin = 0; begin < path.size() && !is_found;) {
      const std::size_t end = std::min(path.find(':', begin), path.size());
      const std::string file = fmt::format("{}/{}", path.substr(begin, end - begin), program);
      is_found = access(file.c_str(), X_OK) == 0;
      begin = end + 1;
    }
    if (!is_found) missing.emplace_back(program);
  }
  return missing;
}

PathFacts LookAtPath(const std::string& path) {
  PathFacts facts{path, {}};
  std::filesystem::path so_far;
  for (const auto& name : std::filesystem::path(path)) {
    so_far /= name;
    struct stat status{};
    if (stat(so_far.c_str(), &status) != 0) break;
    const bool has_acl = getxattr(so_far.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
    facts.parts.push_back({so_far.string(), status.st_uid, status.st_gid, status.st_mode, has_acl});
  }
  return facts;
}

std::string NearestThatExists(std::string path) {
  std::error_code ignored;
  while (path.size() > 1 && !std::filesystem::exists(path, ignored)) {
    path = std::filesystem::path(path).parent_path().string();
  }
  return path.empty() ? "/" : path;
}

StateFacts LookAtState(const std::string& dir) {
  StateFacts state;
  const std::string nearest = NearestThatExists(dir);
  state.exists = nearest == dir;
  state.is_usable = access(nearest.c_str(), W_OK | X_OK) == 0;
  struct stat status{};
  if (stat(nearest.c_str(), &status) == 0) state.owner = UserName(status.st_uid);
  return state;
}

std::optional<std::int64_t> AvailableMemoryMib() {
  // /proc has no size, so it is read in one piece of its own.
  const UniqueFd file(open("/proc/meminfo", O_RDONLY | O_CLOEXEC));
  std::string text(8192, '\0');
  const ssize_t got = file.IsOpen() ? read(file.get(), text.data(), text.size()) : -1;
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  const std::string field = FieldOf(text, "MemAvailable:");
  std::int64_t kib = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), kib);
  if (error != std::errc()) return std::nullopt;
  return kib / 1024;
}

std::vector<std::string> PublicKeys(const Environ& environment) {
  std::vector<std::string> keys;
  const auto home = environment("HOME");
  if (!home) return keys;
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(*home + "/.ssh", failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    if (entry->path().extension() == ".pub") keys.push_back(entry->path().string());
  }
  std::ranges::sort(keys);
  return keys;
}

std::optional<std::string> LookAtFirewall() {
  const auto rules = RunProcess({.argv = {"nft", "-j", "list", "ruleset"},
                                 .timeout = limits::kDoctorTool,
                                 .max_output_bytes = limits::kDoctorRulesBytes});
  // Without nft there may still be rules; nobody here can tell.
  if (!rules || !rules->Succeeded() || rules->is_truncated) return std::nullopt;
  return rules->stdout_text;
}

bool IsApparmorOn() {
  const UniqueFd file(open("/sys/module/apparmor/parameters/enabled", O_RDONLY | O_CLOEXEC));
  char answer = 'N';
  return file.IsOpen() && read(file.get(), &answer, 1) == 1 && answer == 'Y';
}

void LookAtConfig(const LookRequest& request, const Environ& environment, DoctorFacts& facts,
                  Config& config) {
  const std::string path =
      request.config_path.empty() ? std::string(kDefaultConfigPath) : request.config_path;
  const bool exists =
      access(path.c_str(), F_OK) == 0 || errno == EACCES || !request.config_path.empty();
  if (exists) facts.config_path = path;
  facts.is_config_denied = exists && access(path.c_str(), R_OK) != 0 && errno == EACCES;
  std::optional<std::string> read = request.config_path;
  if (request.config_path.empty()) read = std::nullopt;
  auto outcome = ReadConfig(read, request.overrides, environment);
  if (outcome) {
    config = *std::move(outcome);
  } else {
    if (!facts.is_config_denied) facts.config_mistakes = outcome.error();
    // What can be looked at all the same is what stands in the defaults.
    HostConfig host;
    host.uri = "qemu:///embed?root=" + config.state.EmbeddedRoot();
    config.hosts.push_back(std::move(host));
  }
  const std::string& address = config.server.address;
  facts.listen = address.contains(':') ? fmt::format("[{}]:{}", address, config.server.port)
                                       : fmt::format("{}:{}", address, config.server.port);
  facts.state_dir = config.state.dir;
  facts.images = config.images;
}

void LookAtPaths(DoctorFacts& facts) {
  bool has_daemon = false;
  for (const HostFacts& host : facts.hosts) {
    has_daemon = has_daemon || host.needs == HostNeeds::kDaemon;
    if (!host.pool_path.empty()) facts.paths.push_back(LookAtPath(host.pool_path));
  }
  if (!has_daemon) return;
  for (const model::Image& image : facts.images) {
    for (const std::string& file : {image.disk_path, image.kernel_path, image.initrd_path}) {
      if (!file.empty()) facts.paths.push_back(LookAtPath(file));
    }
  }
}

}  // namespace

DoctorFacts LookAtThisMachine(const LookRequest& request, Clock& clock,
                              const Environ& environment) {
  DoctorFacts facts;
  Config config;
  LookAtConfig(request, environment, facts, config);
  facts.user = LookAtUser();
  facts.qemu_user = LookAtQemuUser();
  for (const HostConfig& host : config.hosts) facts.hosts.push_back(LookAtHost(host));
  const bool wants_kvm = std::ranges::any_of(facts.hosts, [](const HostFacts& host) {
    return host.needs != HostNeeds::kNothing && host.accel != "tcg";
  });
  if (request.with_kvm && wants_kvm) facts.kvm = LookAtKvm();
  facts.missing_programs = MissingPrograms();
  facts.libvirt_driver_path = kLibvirtDriver;
  facts.has_libvirt_driver = access(kLibvirtDriver, R_OK) == 0;
  const bool has_bridge = std::ranges::any_of(facts.hosts, [](const HostFacts& host) {
    return host.network && !host.network->bridge.empty();
  });
  if (has_bridge) facts.firewall = LookAtFirewall();
  facts.has_ufw = access("/usr/sbin/ufw", X_OK) == 0;
  LookAtPaths(facts);
  facts.state = LookAtState(facts.state_dir);
  facts.has_apparmor = IsApparmorOn();
  facts.has_apparmor_helper = access(kApparmorHelper, X_OK) == 0;
  facts.disk_path = NearestThatExists(facts.state_dir);
  struct statvfs disk{};
  if (statvfs(facts.disk_path.c_str(), &disk) == 0) {
    facts.disk_free_mib =
        static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize) >> 20;
  }
  facts.memory_free_mib = AvailableMemoryMib();
  facts.public_keys = PublicKeys(environment);
  timex state{};
  const int clock_state = adjtimex(&state);
  // Containers may not ask.
  if (clock_state >= 0) facts.is_clock_synchronised = clock_state != TIME_ERROR;
  const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(clock.Now()));
  facts.year = static_cast<int>(today.year());
  return facts;
}

}  // namespace vmonce::app
