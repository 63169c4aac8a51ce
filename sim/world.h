// One made-up world: replicas, hosts, clients and an operator, from a seed to its end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/faults.h"
#include "sim/mutants.h"

namespace vmonce::sim {

struct Workshop;

// What is asked of a world beside its seed. What is absent is drawn from the seed.
struct WorldOptions {
  std::uint64_t seed = 0;
  FaultChoice faults = FaultChoice::kSwarm;
  std::vector<FaultKind> without;  // Left out, whatever the choice.
  std::optional<int> replicas;
  std::optional<int> hosts;
  std::optional<int> clients;
  std::optional<int> requests;
  std::optional<Mutant> mutant;
  std::size_t story_lines = 0;  // Of the end of the story; 0: it is not told.
};

struct WorldReport {
  std::uint64_t hash = 0;  // Of everything that happened: two runs of one seed have one.
  std::string invariant;   // That was broken; empty: none.
  std::string breach;
  std::vector<std::string> story;
  std::array<std::uint64_t, kFaultKinds> fired{};
  std::map<std::string, std::uint64_t> marks;
  std::uint64_t turns = 0;
  // As drawn.
  int replicas = 0;
  int hosts = 0;
  int clients = 0;
  int requests = 0;
};

// Runs it to its end. Memory of killed processes is not given back: who runs many worlds does so in
// processes of some hundreds each (campaign.h).
WorldReport RunWorld(const WorldOptions& options, Workshop& workshop);

}  // namespace vmonce::sim
