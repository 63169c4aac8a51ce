#include "engine/lease_keeper.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "base/system.h"
#include "engine/fake_ledger.h"

namespace vmonce::engine {
namespace {

constexpr Milliseconds kTtl{15'000};

struct Rig {
  FakeClock clock;
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Logger> logger = NewNullLogger();
  FakeLedger ledger{clock, *threads};
  LeaseKeeper keeper{ledger, clock, *threads, *logger, {kTtl, Milliseconds(5'000)}};

  model::Lease Grant(std::uint8_t last) {
    model::Operation operation;
    operation.id.value.bytes[15] = last;
    operation.fence = {1};
    operation.lease_owner = "r-0000000000000001";
    operation.lease_until = clock.Now() + kTtl;
    ledger.Put(operation);
    return operation.CurrentLease();
  }
  void TakeAway(const model::Lease& lease) {
    model::Operation row = ledger.Row(lease.operation);
    ++row.fence.value;
    ledger.Put(row);
  }
};

TEST(LeaseKeeper, MeasuresTheDeadlineFromBeforeTheLedgerWasAsked) {
  Rig rig;
  const Instant asked = rig.clock.Monotonic();
  const model::Lease lease = rig.Grant(1);
  rig.clock.Advance(Milliseconds(3'000));  // The answer took so long.
  const auto held = rig.keeper.Keep(lease, asked);
  EXPECT_EQ(held->deadline(), asked + kTtl);
  EXPECT_EQ(held->fence(), model::Fence{1});

  const Instant renewed = rig.clock.Monotonic();
  rig.ledger.after = [&](std::string_view) -> std::optional<Error> {
    rig.clock.Advance(Milliseconds(2'000));
    return std::nullopt;
  };
  rig.keeper.RunOnce();
  EXPECT_EQ(held->deadline(), renewed + kTtl);
}

TEST(LeaseKeeper, RenewsAllThatAreHeldInOneCall) {
  Rig rig;
  const auto first = rig.keeper.Keep(rig.Grant(1), rig.clock.Monotonic());
  const auto second = rig.keeper.Keep(rig.Grant(2), rig.clock.Monotonic());
  rig.clock.Advance(Milliseconds(5'000));
  rig.keeper.RunOnce();
  EXPECT_EQ(rig.ledger.Calls("Renew"), 1);
  EXPECT_EQ(first->deadline(), rig.clock.Monotonic() + kTtl);
  EXPECT_EQ(second->deadline(), rig.clock.Monotonic() + kTtl);
  EXPECT_EQ(rig.ledger.Row(first->lease().operation).lease_until, rig.clock.Now() + kTtl);
}

TEST(LeaseKeeper, PutsTheDeadlineOfALostLeaseIntoThePastAndExtendsTheOthers) {
  Rig rig;
  const auto lost = rig.keeper.Keep(rig.Grant(1), rig.clock.Monotonic());
  const auto kept = rig.keeper.Keep(rig.Grant(2), rig.clock.Monotonic());
  rig.TakeAway(lost->lease());
  rig.clock.Advance(Milliseconds(5'000));
  rig.keeper.RunOnce();
  EXPECT_LT(lost->deadline(), rig.clock.Monotonic());
  EXPECT_EQ(kept->deadline(), rig.clock.Monotonic() + kTtl);
}

TEST(LeaseKeeper, ExtendsNothingWhenTheLedgerFails) {
  Rig rig;
  const auto held = rig.keeper.Keep(rig.Grant(1), rig.clock.Monotonic());
  const Instant deadline = held->deadline();
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kUnknown}) {
    rig.ledger.after = [code](std::string_view) { return Error{code, "made up"}; };
    rig.clock.Advance(Milliseconds(5'000));
    rig.keeper.RunOnce();
    EXPECT_EQ(held->deadline(), deadline);
  }
  EXPECT_EQ(rig.ledger.Calls("Renew"), 2);
}

TEST(LeaseKeeper, RenewsNothingThatWasDropped) {
  Rig rig;
  const auto held = rig.keeper.Keep(rig.Grant(1), rig.clock.Monotonic());
  rig.keeper.Drop(*held);
  rig.keeper.RunOnce();
  EXPECT_EQ(rig.ledger.Calls("Renew"), 0);
}

TEST(LeaseKeeper, DroppingAnEarlierLeaseKeepsTheNewOneOfTheSameOperation) {
  Rig rig;
  const auto early = rig.keeper.Keep(rig.Grant(1), rig.clock.Monotonic());
  const auto late = rig.keeper.Keep(rig.Grant(1), rig.clock.Monotonic());
  rig.keeper.Drop(*early);
  rig.clock.Advance(Milliseconds(5'000));
  rig.keeper.RunOnce();
  EXPECT_EQ(late->deadline(), rig.clock.Monotonic() + kTtl);
}

TEST(LeaseKeeper, RunEndsWhenItIsAskedToStop) {
  Rig rig;
  const std::unique_ptr<Thread> thread =
      rig.threads->Spawn("leases", [&](std::stop_token stop) { rig.keeper.Run(stop); });
  thread->RequestStop();
  thread->Join();
}

}  // namespace
}  // namespace vmonce::engine
