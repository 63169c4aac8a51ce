// The ledgers of the worlds that one process runs after each other. Each world begins with an empty
// one, and opening it, and compiling its statements, would cost as much as the world.
#pragma once

#include <memory>

#include "ledger/sqlite_ledger.h"
#include "sim/world_threads.h"

namespace vmonce::sim {

// Used by one thread. No history depends on what was served before.
class Ledgers {
 public:
  Ledgers();

  // The ledger of a world that begins, whose clock is borrowed until the next one does.
  ledger::SqliteLedger& Begin(Clock& clock);
  // What it holds now is kept, and comes back.
  void Copy();
  void Restore();

 private:
  class BorrowedClock final : public Clock {
   public:
    void Borrow(Clock& clock) { clock_ = &clock; }
    Time Now() override { return clock_ == nullptr ? FromUnixMs(kWorldBeganMs) : clock_->Now(); }
    Instant Monotonic() override { return clock_ == nullptr ? Instant{} : clock_->Monotonic(); }

   private:
    Clock* clock_ = nullptr;
  };

  std::unique_ptr<ledger::SqliteLedger> Open();

  NoThreads threads_;
  const std::unique_ptr<Logger> logger_;
  Chance same_for_all_{0};
  BorrowedClock clock_;
  const std::unique_ptr<ledger::SqliteLedger> empty_;
  const std::unique_ptr<ledger::SqliteLedger> served_;
  std::unique_ptr<ledger::SqliteLedger> copy_;  // Of the few worlds that restore one.
};

}  // namespace vmonce::sim
