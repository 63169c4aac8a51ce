// The intent: the face-independent, versioned normal form of what a create asks for. Two faces
// compare intents.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "model/vm.h"

namespace vmonce::model {

struct CreateIntent {
  std::string name;   // As asked; empty when it is to be generated.
  std::string image;  // As asked, an alias included: what is pinned is not part of the intent.
  int count = 1;
  int cpus = 1;
  int memory_mib = 512;
  int disk_gib = 0;
  std::string hostname;  // Empty: the VM's name.
  std::vector<std::string> ssh_keys;
  std::string network = "user";
  std::vector<Forward> forwards;
  std::map<std::string, std::string> labels;
  Desired desired = Desired::kRunning;
  RestartPolicy restart = RestartPolicy::kHostFailure;
  std::optional<Digest> user_data_mac;  // HMAC of the decoded bytes.

  bool operator==(const CreateIntent&) const = default;
};

// Canonical JSON with "version":1; every member is there, user_data_mac as null when there is none.
// Members that came later are left out while they hold their default: intents stored before them
// stay comparable.
// Equal intents give equal texts, different ones different texts.
std::string Serialise(const CreateIntent& intent);

// The names of a batch: `name`, or `name-0` … `name-(count-1)` when count > 1. The result may be
// longer than a name may be; the last one is the longest.
std::string ItemName(const std::string& name, int index, int count);

// A name made from the VM's id, for a request that names none: "vm-" and the id's last 12
// hexadecimal digits.
std::string GeneratedName(const VmId& vm);

// RFC 1123 label: 1 to 63 of a-z, 0-9 and '-', not at the ends. Lower case only: names compare byte
// by byte.
bool IsValidName(std::string_view name);

}  // namespace vmonce::model
