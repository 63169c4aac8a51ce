#include "hypervisor/simulated_driver.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "base/system.h"
#include "base/temp_dir.h"

namespace vmonce::hypervisor {
namespace {

using model::Observed;

// One fault, for the calls of one kind, a number of times.
class OneFault final : public FaultPlan {
 public:
  OneFault(SimulatedCall call, Fault fault, int times)
      : call_(call), fault_(std::move(fault)), left_(times) {}

  Fault Next(SimulatedCall call, const std::optional<model::VmId>&) override {
    if (call != call_ || left_ == 0) return {};
    --left_;
    ++fired;
    return fault_;
  }

  int fired = 0;

 private:
  const SimulatedCall call_;
  const Fault fault_;
  int left_;
};

const model::LedgerId kLedger{"0123456789ab"};

model::VmId TheVm() { return {*ParseUuid("01900000-0000-7000-8000-0000000000aa")}; }

ports::DomainOrder Order() {
  return {.vm = TheVm(),
          .name = model::DomainName(kLedger, TheVm()),
          .label = {.ledger = kLedger,
                    .host = {"one"},
                    .project = {"default"},
                    .fingerprint = std::string(64, 'b'),
                    .operation = {TheVm().value}}};
}

class SimulatedDriverTest : public testing::Test {
 protected:
  SimulatedDriverTest() { Use({}); }

  void Use(SimulatedOptions options) {
    auto host = SimulatedHost::Open(options, clock_, *threads_);
    ASSERT_TRUE(host) << host.error().detail;
    host_ = *std::move(host);
    With(std::make_shared<NoFaults>());
  }

  void With(std::shared_ptr<FaultPlan> plan) {
    driver_ = std::make_unique<SimulatedDriver>(host_, std::move(plan), SimulatedDriverOptions{},
                                                clock_, *threads_);
    ASSERT_TRUE(
        driver_->Connect({.ledger = kLedger, .host = {"one"}}, ports::MarkerPolicy::kWriteIfNone));
  }

  std::shared_ptr<OneFault> WithFault(SimulatedCall call, Fault fault, int times = 1) {
    auto plan = std::make_shared<OneFault>(call, std::move(fault), times);
    With(plan);
    return plan;
  }

  template <typename State>
  bool Eventually(State state) {
    for (int i = 0; i < 500; ++i) {
      if (state()) return true;
      threads_->SleepFor(Milliseconds(10), {});
    }
    return false;
  }

  FakeClock clock_;
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  std::shared_ptr<SimulatedHost> host_;
  std::unique_ptr<SimulatedDriver> driver_;
};

// report 103: the words of an error are no evidence of absence.
TEST_F(SimulatedDriverTest, DoesNotMakeAbsenceOfAnErrorThatSaysNotFound) {
  ASSERT_TRUE(driver_->Define(Order(), {}));
  const auto plan =
      WithFault(SimulatedCall::kLook,
                {.instead = Error{ErrorCode::kUnavailable, "no such host: domain not found"}});
  auto seen = driver_->Look(TheVm());
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(plan->fired, 1);
  seen = driver_->Look(TheVm());
  EXPECT_TRUE(seen && *seen);
}

TEST_F(SimulatedDriverTest, DoesNothingWhenAFaultAnswersInstead) {
  const auto plan =
      WithFault(SimulatedCall::kDefine, {.instead = Error{ErrorCode::kRefused, "no"}});
  EXPECT_EQ(driver_->Define(Order(), {}).error().code, ErrorCode::kRefused);
  EXPECT_EQ(plan->fired, 1);
  EXPECT_FALSE(host_->Find(TheVm()));
}

TEST_F(SimulatedDriverTest, DoesItAndLosesTheReply) {
  const auto plan = WithFault(SimulatedCall::kDefine, {.lose_reply = true});
  EXPECT_EQ(driver_->Define(Order(), {}).error().code, ErrorCode::kUnknown);
  EXPECT_EQ(plan->fired, 1);
  EXPECT_TRUE(host_->Find(TheVm()));
  // Found and ours: the same order converges.
  EXPECT_TRUE(driver_->Define(Order(), {}));
  EXPECT_EQ(host_->Effects(SimulatedCall::kDefine), 1);
}

TEST_F(SimulatedDriverTest, AppliesAnEffectLateWhateverHappenedMeanwhile) {
  ASSERT_TRUE(driver_->Define(Order(), {.fence = {1}}));
  WithFault(SimulatedCall::kStart, {.apply_after = Milliseconds(50)});
  EXPECT_EQ(driver_->Start(TheVm(), {.fence = {1}}).error().code, ErrorCode::kUnknown);
  EXPECT_EQ((*driver_->Look(TheVm()))->power, Observed::kStopped);
  ASSERT_TRUE(driver_->StampFence(TheVm(), {.fence = {2}}));
  EXPECT_TRUE(Eventually([&] { return host_->Find(TheVm())->power == Observed::kRunning; }));
}

TEST_F(SimulatedDriverTest, DoesNotStartAnEffectWhoseDeadlinePassedWhileItHung) {
  class Hang final : public FaultPlan {
   public:
    explicit Hang(FakeClock& clock) : clock_(clock) {}
    Fault Next(SimulatedCall call, const std::optional<model::VmId>&) override {
      if (call == SimulatedCall::kDefine) clock_.Advance(Milliseconds(1'000));
      return {};
    }

   private:
    FakeClock& clock_;
  };
  With(std::make_shared<Hang>(clock_));
  const Status late =
      driver_->Define(Order(), {.deadline = clock_.Monotonic() + Milliseconds(500)});
  EXPECT_EQ(late.error().code, ErrorCode::kFenced);
  EXPECT_FALSE(host_->Find(TheVm()));
}

// report 110: a list that lags, or leaves something out.
TEST_F(SimulatedDriverTest, ListsThePastAndLeavesOut) {
  ASSERT_TRUE(driver_->Define(Order(), {}));
  clock_.Advance(Milliseconds(1'000));
  ASSERT_TRUE(driver_->Undefine(TheVm(), {}));
  WithFault(SimulatedCall::kList, {.list_lag = Milliseconds(500)});
  EXPECT_EQ(driver_->List()->size(), 1u);
  EXPECT_EQ(driver_->List()->size(), 0u);
  WithFault(SimulatedCall::kList, {.list_lag = Milliseconds(5'000)});
  EXPECT_EQ(driver_->List()->size(), 0u) << "before it was made";

  ASSERT_TRUE(driver_->Define(Order(), {}));
  WithFault(SimulatedCall::kList, {.omit = {TheVm()}});
  EXPECT_EQ(driver_->List()->size(), 0u);
  EXPECT_EQ(driver_->List()->size(), 1u);
}

TEST_F(SimulatedDriverTest, DoesNotStartWithoutItsDisk) {
  auto order = Order();
  order.disk_name = model::DiskName(kLedger, TheVm());
  ASSERT_TRUE(driver_->Define(order, {}));
  EXPECT_EQ(driver_->Start(TheVm(), {}).error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(driver_->CreateDisk({.vm = TheVm(), .name = order.disk_name, .base_path = "/b"}, {}));
  EXPECT_TRUE(driver_->Start(TheVm(), {}));
}

TEST_F(SimulatedDriverTest, ShowsWhatWasStartedOnTheConsole) {
  ASSERT_TRUE(driver_->Define(Order(), {}));
  EXPECT_EQ(driver_->ReadConsole(TheVm(), 0, 10).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(driver_->Start(TheVm(), {}));
  auto chunk = driver_->ReadConsole(TheVm(), 0, 9);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->data, "simulated");
  EXPECT_EQ(driver_->ReadConsole(TheVm(), -1, 9)->data, "\n");
}

TEST_F(SimulatedDriverTest, KeepsItsMachinesInADirectory) {
  const TempDir directory;
  Use({.directory = directory.path()});
  auto order = Order();
  order.seed_name = model::SeedName(kLedger, TheVm());
  ASSERT_TRUE(driver_->CreateSeed({.vm = TheVm(), .name = order.seed_name}, {}));
  ASSERT_TRUE(driver_->Define(order, {.fence = {3}}));
  ASSERT_TRUE(driver_->Start(TheVm(), {.fence = {3}}));
  const auto before = host_->Find(TheVm());

  Use({.directory = directory.path()});
  EXPECT_EQ(host_->Find(TheVm()), before);
  EXPECT_EQ(driver_->ListVolumes()->size(), 1u);
  auto other =
      driver_->Connect({.ledger = kLedger, .host = {"two"}}, ports::MarkerPolicy::kWriteIfNone);
  EXPECT_EQ(other.error().code, ErrorCode::kConflict);
  ASSERT_TRUE(driver_->Destroy(TheVm(), {.fence = {3}}));
  ASSERT_TRUE(driver_->Undefine(TheVm(), {.fence = {3}}));
  ASSERT_TRUE(driver_->DeleteSeed(TheVm(), {.fence = {3}}));

  Use({.directory = directory.path()});
  EXPECT_TRUE(host_->Domains().empty());
  EXPECT_TRUE(host_->Volumes().empty());
}

TEST_F(SimulatedDriverTest, StopsEverythingWhenTheHostRestarts) {
  ASSERT_TRUE(driver_->Define(Order(), {}));
  ASSERT_TRUE(driver_->Start(TheVm(), {}));
  host_->PowerOffAll();
  EXPECT_EQ((*driver_->Look(TheVm()))->power, Observed::kStopped);
}

}  // namespace
}  // namespace vmonce::hypervisor
