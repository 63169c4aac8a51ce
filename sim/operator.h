// The person who runs the hosts of a made-up world: declares, migrates, removes, reboots, and sets
// everything right in the end.
#pragma once

#include <memory>
#include <vector>

#include "hypervisor/simulated_host.h"
#include "sim/replica.h"

namespace vmonce::sim {

struct Machine;
struct Stage;

class Operator {
 public:
  // Both outlive it.
  Operator(Stage& stage, std::vector<std::unique_ptr<Replica>>& replicas)
      : stage_(stage), replicas_(replicas) {}

  // On a fiber of its own, until the faults stop.
  void Run();
  bool IsDone() const { return is_done_; }
  // Hosts that were declared dead are back.
  void SetRight();

 private:
  void SetClocks();
  void RebootHosts();
  void DeclareDead();
  void RemoveByHand();
  void Migrate();
  void Repoint();
  bool MayRepoint(const Machine& machine) const;
  void RestartReplicas();
  bool IsOurs(const hypervisor::SimulatedDomain& domain) const;
  void Declare(const model::HostId& host, model::HostState state);

  Stage& stage_;
  std::vector<std::unique_ptr<Replica>>& replicas_;
  bool is_done_ = false;
};

}  // namespace vmonce::sim
