// What all parts of one made-up world share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hypervisor/simulated_host.h"
#include "sim/chance.h"
#include "sim/faults.h"
#include "sim/mutants.h"
#include "sim/oracle.h"
#include "sim/scheduler.h"
#include "sim/story.h"
#include "sim/workshop.h"
#include "sim/world_threads.h"

namespace vmonce::sim {

// How large a world is and how it is set up, drawn from its seed; a smaller one may be asked for.
struct Shape {
  int replicas = 1;
  int hosts = 1;
  int clients = 1;
  int requests = 1;  // Of each client.
  int workers = 1;   // Of each replica.
  // Embedded hypervisors (protocol section 9): one replica, and what it ordered ends with it.
  bool is_embedded = false;
  Milliseconds settle{0};
  Milliseconds record_within{0};
  Milliseconds reconcile_every{30'000};
  int yield_one_in = 0;  // Turns given away at locks.
  std::int64_t quota_vms = 100;
  std::int64_t capacity_vms = 100;

  static Shape Draw(Chance& chance);
};

// A host as the world sees it.
struct Machine {
  model::HostId id;
  std::shared_ptr<hypervisor::SimulatedHost> host;
  Instant down_until{};  // Does not answer before.
  // Where its URI leads for replicas that start now; null: to itself.
  std::shared_ptr<hypervisor::SimulatedHost> repointed;

  const std::shared_ptr<hypervisor::SimulatedHost>& reached() const {
    return repointed ? repointed : host;
  }
};

struct Stage {
  Stage(std::uint64_t seed, FaultChoice choice, std::size_t story_lines, Workshop& workshop);

  // Where the world stands still for as long as a call takes; a crash never returns.
  void Pass(std::string_view door, Milliseconds latency);
  template <typename... Args>
  void Tell(std::string_view who, fmt::format_string<Args...> what, Args&&... args) {
    if (story.IsTold()) {
      story.Tell(scheduler.now(), who, fmt::format(what, std::forward<Args>(args)...));
    }
  }
  bool Happens(FaultKind kind) { return faults.Happens(kind, fault_chance); }

  Chance seed_chance;  // Of what is drawn once, in the order below.
  Chance fault_chance;
  Chance work_chance;     // Latencies, clients, operators.
  Chance replica_chance;  // Ids and jitter in production code.
  Shape shape;
  Faults faults;
  Story story;
  Scheduler scheduler;
  WorldClock clock;  // The ledger's.
  NoThreads no_threads;
  FiberThreads world_threads;
  std::unique_ptr<Logger> null_logger;
  Ledgers& ledgers;
  ledger::SqliteLedger* const ledger;    // What it really holds.
  std::unique_ptr<ports::Ledger> store;  // The same, as replicas meet it.
  Instant ledger_down_until{};
  Instant settled_at{};         // No call hangs longer, and no effect comes later.
  bool are_hosts_well = false;  // Nothing goes wrong on hosts now.
  bool is_closed = false;       // Nobody starts a replica now.
  std::vector<Machine> machines;
  Oracle oracle;
  std::optional<Mutant> mutant;
  // Kills the process that the current fiber is of; never returns when there is one.
  std::function<void()> crash_current = [] {};
  // Puts its computer to sleep, if that may be now; the current fiber is part of it.
  std::function<void()> sleep_current = [] {};
};

}  // namespace vmonce::sim
