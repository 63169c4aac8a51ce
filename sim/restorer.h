// The person who restores an older copy of the ledger, has it served, sees that it is refused, and
// rebuilds it from the hosts (protocol section 11).
#pragma once

#include <memory>
#include <vector>

#include "sim/replica.h"

namespace vmonce::sim {

struct Stage;

class Restorer {
 public:
  // Both outlive it.
  Restorer(Stage& stage, std::vector<std::unique_ptr<Replica>>& replicas)
      : stage_(stage), replicas_(replicas) {}

  // On a fiber of its own; does nothing in a world where no ledger is restored.
  void Run();
  bool IsDone() const { return is_done_; }

 private:
  void Sleep(Milliseconds duration);
  // Every replica is killed, and none starts; what they left out has taken effect.
  void Close();
  void Reopen();
  bool Rebuild();

  Stage& stage_;
  std::vector<std::unique_ptr<Replica>>& replicas_;
  bool is_done_ = false;
};

}  // namespace vmonce::sim
