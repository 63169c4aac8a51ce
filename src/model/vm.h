// A virtual machine's row: what was asked, the states it may be in, and what is known of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/forward.h"
#include "model/host.h"
#include "model/ids.h"
#include "model/image.h"
#include "model/operation.h"

namespace vmonce::model {

enum class VmState {
  kPending,  // Accepted; nothing exists yet.
  kCreating,
  kReady,    // Was observed once as asked: running, or defined and off; `observed` says how it is.
  kFailed,   // No effect is left.
  kMissing,  // Should exist and was looked for by UUID without success. Never re-created.
  kDeleting,
  kDeleted,
};

std::string_view ToString(VmState state);
std::optional<VmState> ParseVmState(std::string_view text);

// pending → creating → ready | failed, failed → creating (new attempt), ready ⇄ missing, every
// state → deleting → deleted. Staying is legal.
bool IsLegal(VmState from, VmState to);

enum class Desired { kRunning, kStopped };
std::string_view ToString(Desired desired);
std::optional<Desired> ParseDesired(std::string_view text);

enum class Observed { kUnknown, kRunning, kStopped, kPaused, kAbsent };
std::string_view ToString(Observed observed);
std::optional<Observed> ParseObserved(std::string_view text);

// Why a machine is off, as far as the hypervisor's own typed facts tell.
enum class StopCause {
  kNone,    // It runs, or nothing is known of a stop.
  kGuest,   // It shut itself down.
  kPerson,  // Somebody powered it off, through the service or beside it.
  kHost,    // It crashed, or went down with its host or hypervisor: nobody wanted it.
};
std::string_view ToString(StopCause cause);
std::optional<StopCause> ParseStopCause(std::string_view text);

// Whether a machine that should run, and was stopped by kHost, is started again there.
enum class RestartPolicy { kHostFailure, kNever };
std::string_view ToString(RestartPolicy policy);
std::optional<RestartPolicy> ParseRestartPolicy(std::string_view text);

struct VmSpec {
  Image image;  // Pinned at acceptance.
  int cpus = 1;
  int memory_mib = 512;
  int disk_gib = 0;  // 0: the image's own size.
  std::string hostname;
  std::vector<std::string> ssh_keys;
  std::string network = "user";   // See model/network.h.
  std::vector<Forward> forwards;  // As asked for; only in user-mode networking.

  bool operator==(const VmSpec&) const = default;
};

// What a VM of this spec takes from quotas and hosts.
Resources Demand(const VmSpec& spec);

struct Vm {
  VmId id;
  ProjectId project;
  std::string name;
  OperationId operation;  // That created it.
  int index = 0;
  std::string key_prefix;
  VmSpec spec;
  std::string mac;
  std::map<std::string, std::string> labels;

  VmState state = VmState::kPending;
  Desired desired = Desired::kRunning;
  Observed observed = Observed::kUnknown;
  StopCause stopped_by = StopCause::kNone;  // Of the stop that `observed` tells of.
  RestartPolicy restart = RestartPolicy::kHostFailure;
  int restarts = 0;               // In a row, by the service itself: see model/restart.h.
  std::optional<Time> restarted;  // The last of them.
  std::optional<HostId> host;
  // The host's ports that lead to it, in the order of spec.forwards; reserved while it is placed.
  std::vector<Forward> forwards;
  // How often ports were given up for others because some program of the host had taken them.
  int forward_moves = 0;
  std::vector<std::string> addresses;  // Of the guest, as its host last told; empty: none known.
  std::int64_t version = 1;            // The ETag.
  std::optional<OperationId> holder;   // The one operation that may act on it now.
  std::optional<OperationId> delete_operation;  // Set: marked for deletion.
  bool holds_reservation = true;                // Name, quota and, once placed, host capacity.
  // An order of whatever operation, whose answer was lost, may take effect on its host until then:
  // no absence is believed before (protocol section 9).
  Time unsettled_until{};
  std::optional<Failure> failure;

  Time created{};
  Time updated{};
  std::optional<Time> deleted;

  bool operator==(const Vm&) const = default;
};

}  // namespace vmonce::model
