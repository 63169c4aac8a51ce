// What `vmonce doctor` concludes from the facts: one finding a check, each with its repair. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/doctor_facts.h"

namespace vmonce::app {

enum class FindingResult {
  kOk,
  kWarn,  // Works, but worse than it could; or could not be looked at.
  kFail,  // A create will fail of it.
};

std::string_view ToString(FindingResult result);  // "ok", "warn", "fail"

struct Finding {
  std::string name;  // "kvm"; does not change within v1.
  FindingResult result = FindingResult::kOk;
  std::string what;    // One sentence without its full stop.
  std::string why;     // "" when all is well.
  std::string repair;  // One command, or what to write where; "" when all is well.

  bool operator==(const Finding&) const = default;
};

// Every check, in the order in which a person would mend things. A check may find several things.
std::vector<Finding> Diagnose(const DoctorFacts& facts);

// The checks one by one; Diagnose() is all of them.
using Check = std::vector<Finding> (*)(const DoctorFacts& facts);
std::vector<Finding> CheckConfig(const DoctorFacts& facts);
std::vector<Finding> CheckServer(const DoctorFacts& facts);
std::vector<Finding> CheckHosts(const DoctorFacts& facts);
std::vector<Finding> CheckKvm(const DoctorFacts& facts);
std::vector<Finding> CheckSession(const DoctorFacts& facts);
std::vector<Finding> CheckPrograms(const DoctorFacts& facts);
std::vector<Finding> CheckLibvirt(const DoctorFacts& facts);
std::vector<Finding> CheckQemuUser(const DoctorFacts& facts);
std::vector<Finding> CheckRootPath(const DoctorFacts& facts);
std::vector<Finding> CheckNetwork(const DoctorFacts& facts);
std::vector<Finding> CheckDhcp(const DoctorFacts& facts);
std::vector<Finding> CheckFolders(const DoctorFacts& facts);
std::vector<Finding> CheckApparmor(const DoctorFacts& facts);
std::vector<Finding> CheckDisk(const DoctorFacts& facts);
std::vector<Finding> CheckMemory(const DoctorFacts& facts);
std::vector<Finding> CheckImage(const DoctorFacts& facts);
std::vector<Finding> CheckPublicKey(const DoctorFacts& facts);
std::vector<Finding> CheckClock(const DoctorFacts& facts);

// True when a ruleset of `nft -j list ruleset` has an input chain that drops by default, in a table
// in which nothing accepts what comes in from `bridge` or to the ports of DHCP. `chain` becomes
// "inet filter input".
bool DropsDhcp(std::string_view ruleset, std::string_view bridge, std::string& chain);

}  // namespace vmonce::app
