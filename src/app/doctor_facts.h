// What `vmonce doctor` knows of this computer and of the server: plain values, so that every
// finding can be tried in both states.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "base/clock.h"

namespace vmonce::app {

// Hosts of the configuration, by what they need of this computer.
enum class HostNeeds {
  kNothing,   // Simulated, libvirt's test driver, or on another computer.
  kEmbedded,  // libvirt's driver and QEMU, started by us.
  kDaemon,    // A libvirt daemon here.
};

struct NetworkFacts {
  enum class State { kActive, kInactive, kAbsent, kUnknown };
  State state = State::kUnknown;
  std::string name = "default";
  std::string bridge;
  std::string cause;  // Of kUnknown.
};

struct HostFacts {
  std::string id;
  std::string uri;
  HostNeeds needs = HostNeeds::kNothing;
  std::string accel;                    // "auto", "kvm", "tcg".
  std::string root;                     // kEmbedded: as configured, whatever its length.
  std::string pool_path;                // kDaemon: may be empty.
  std::string socket;                   // kDaemon.
  int connect_error = 0;                // kDaemon: the errno of connecting to it; 0: it listens.
  std::optional<NetworkFacts> network;  // kDaemon, when it was asked.
};

struct UserFacts {
  std::string name;
  uid_t id = 0;
  std::vector<std::string> session_groups;  // What this process has.
  std::vector<std::string> known_groups;    // What the user database says.

  bool IsRoot() const { return id == 0; }
};

struct KvmFacts {
  bool was_asked = false;  // False: nobody looked.
  bool has_device = false;
  int open_error = 0;  // The errno of opening it.
  std::string group;   // The device's.
  bool is_usable = false;
  std::string cause;
};

// One directory on the way to a path.
struct PathPart {
  std::string path;
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0;
  bool has_acl = false;  // Then the mode does not say everything.
};

// A path that QEMU must reach as its own user.
struct PathFacts {
  std::string path;
  std::vector<PathPart> parts;  // From / on, the path itself included when it is there.
};

struct QemuUser {
  uid_t id = 0;
  std::vector<gid_t> groups;
};

struct StateFacts {
  bool exists = false;
  bool is_usable = false;  // We may write there; or, when it does not exist, make it.
  std::string owner;       // Of it, or of the nearest directory above it.
};

struct ServerFacts {
  std::string url;
  bool is_local = false;  // A loopback address.
  bool has_answered = false;
  std::string error;  // Of connecting, when it has not.
  int status = 0;     // Of /readyz.
  std::string code;   // Of the problem, when it is not ready; "http_..." when it is no vmonce.
  std::string detail;
  std::optional<std::chrono::seconds> ahead;  // How far its clock is before ours.
  std::optional<std::size_t> images;          // How many it offers.
  struct Image {
    std::string name;
    std::string problem;
  };
  std::vector<Image> images_with_problems;
  struct Host {
    std::string id;
    bool is_reachable = false;
    std::string problem;
  };
  std::vector<Host> hosts;
};

struct DoctorFacts {
  std::string config_path;  // "" when there is no file: defaults.
  bool is_config_denied = false;
  std::vector<ConfigMistake> config_mistakes;
  std::string listen;  // As configured: "127.0.0.1:8080".
  std::string state_dir;
  std::vector<model::Image> images;

  ServerFacts server;
  UserFacts user;
  std::vector<HostFacts> hosts;
  KvmFacts kvm;
  std::vector<std::string> missing_programs;  // Of those that the hosts need.
  bool has_libvirt_driver = false;
  std::string libvirt_driver_path;
  std::optional<QemuUser> qemu_user;    // libvirt-qemu.
  std::optional<std::string> firewall;  // `nft -j list ruleset`; nothing when it could not be read.
  bool has_ufw = false;
  std::vector<PathFacts> paths;  // Pools and images that a daemon's QEMU reads.
  StateFacts state;
  bool has_apparmor = false;
  bool has_apparmor_helper = false;
  std::string disk_path;  // Where the free space was measured.
  std::optional<std::int64_t> disk_free_mib;
  std::optional<std::int64_t> memory_free_mib;
  std::vector<std::string> public_keys;
  std::optional<bool> is_clock_synchronised;
  int year = 0;
};

// What the local looks are told.
struct LookRequest {
  std::string config_path;  // "" for the default one.
  std::vector<std::string> overrides;
  bool with_kvm = true;  // Takes seconds.
};

// Everything but `server`. Changes nothing; each look is bounded in time.
using LookAtMachine = std::function<DoctorFacts(const LookRequest& request)>;

}  // namespace vmonce::app
