// Many worlds: each some hundred in a process of its own, so that memory of killed replicas goes
// with it and a crash of production code is one world's failure and not the end of the search.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/world.h"

namespace vmonce::sim {

// What was counted over many worlds.
struct Tally {
  std::uint64_t worlds = 0;
  std::uint64_t turns = 0;
  std::array<std::uint64_t, kFaultKinds> fired{};
  std::map<std::string, std::uint64_t> marks;

  void Add(const WorldReport& report);
};

struct Campaign {
  std::uint64_t first = 1;
  std::uint64_t last = 1;  // Inclusive.
  int jobs = 1;
  WorldOptions world;             // But for the seed.
  std::size_t most_failures = 1;  // The search ends when so many worlds are broken.
  // Asked about twice a second, with what was counted so far; false ends the search.
  std::function<bool(const Tally&)> go_on = [](const Tally&) { return true; };
};

struct Failure {
  std::uint64_t seed = 0;
  std::string invariant;
  std::string breach;
};

struct CampaignReport {
  Tally tally;
  std::vector<Failure> failures;
};

// kUnavailable: no process can be made. Precondition: this process has one thread.
Result<CampaignReport> Search(const Campaign& campaign);

// One world in a process of its own. A crash is the invariant "no_crash".
Result<WorldReport> RunApart(const WorldOptions& options);

// The smallest world found that breaks the same invariant: fewer faults, clients, requests, hosts,
// replicas. `broken` broke it. Bounded by some dozens of worlds.
Result<WorldOptions> Shrink(WorldOptions broken, const std::string& invariant);

}  // namespace vmonce::sim
