#include "hypervisor/host_threads.h"

#include <gtest/gtest.h>

#include "base/system.h"
#include "hypervisor/simulated_driver.h"

namespace vmonce::hypervisor {
namespace {

// Lets chosen calls stand still until it is told otherwise.
class Gate final : public FaultPlan {
 public:
  Gate(Threads& threads, SimulatedCall stuck) : monitor_(threads.NewMonitor()), stuck_(stuck) {}

  Fault Next(SimulatedCall call, const std::optional<model::VmId>&) override {
    MonitorLock lock(*monitor_);
    ++asked_;
    if (call != stuck_) return {};
    ++waiting_;
    while (!is_open_) monitor_->Wait();
    --waiting_;
    return {};
  }
  void Open() {
    MonitorLock lock(*monitor_);
    is_open_ = true;
    monitor_->NotifyAll();
  }
  int Waiting() {
    MonitorLock lock(*monitor_);
    return waiting_;
  }
  int Asked() {
    MonitorLock lock(*monitor_);
    return asked_;
  }

 private:
  const std::unique_ptr<Monitor> monitor_;
  const SimulatedCall stuck_;
  int waiting_ GUARDED_BY(*monitor_) = 0;
  int asked_ GUARDED_BY(*monitor_) = 0;
  bool is_open_ GUARDED_BY(*monitor_) = false;
};

class HostThreadsTest : public testing::Test {
 protected:
  static constexpr int kThreads = 2;

  void Use(SimulatedCall stuck, Milliseconds effect_deadline = Milliseconds(50)) {
    gate_ = std::make_shared<Gate>(*threads_, stuck);
    host_ = *SimulatedHost::Open({}, *clock_, *threads_);
    raw_ = std::make_shared<SimulatedDriver>(host_, gate_, SimulatedDriverOptions{}, *clock_,
                                             *threads_);
    threads_of_host_ =
        std::make_unique<HostThreads>(raw_,
                                      HostThreadsOptions{.host = "one",
                                                         .threads = kThreads,
                                                         .effect_deadline = effect_deadline,
                                                         .look_deadline = Milliseconds(50),
                                                         .connect_deadline = Milliseconds(5'000)},
                                      *clock_, *threads_, *logger_);
    ASSERT_TRUE(threads_of_host_->Connect({.ledger = {"0123456789ab"}, .host = {"one"}},
                                          ports::MarkerPolicy::kWriteIfNone));
  }

  ports::SeedOrder Seed(int vm) {
    const model::VmId id = Vm(vm);
    return {.vm = id, .name = model::SeedName({"0123456789ab"}, id), .user_data = "secret"};
  }

  static model::VmId Vm(int number) {
    model::VmId vm;
    vm.value.bytes[15] = static_cast<std::uint8_t>(number);
    return vm;
  }

  template <typename State>
  bool Eventually(State state) {
    for (int i = 0; i < 500; ++i) {
      if (state()) return true;
      threads_->SleepFor(Milliseconds(10), {});
    }
    return false;
  }

  // What a given-up call uses outlives it: the process's end by _exit sees to that elsewhere.
  void OpenAndWait() {
    gate_->Open();
    EXPECT_TRUE(Eventually([&] { return !threads_of_host_->AnyOut(); }));
  }

  const std::unique_ptr<Clock> clock_ = NewSystemClock();
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  const std::unique_ptr<Logger> logger_ = NewNullLogger();
  std::shared_ptr<Gate> gate_;
  std::shared_ptr<SimulatedHost> host_;
  std::shared_ptr<SimulatedDriver> raw_;
  std::unique_ptr<HostThreads> threads_of_host_;
};

TEST_F(HostThreadsTest, AnswersWhatTheDriverAnswers) {
  Use(SimulatedCall::kReboot);
  EXPECT_TRUE(threads_of_host_->CreateSeed(Seed(1), {}));
  auto volumes = threads_of_host_->ListVolumes();
  ASSERT_TRUE(volumes);
  EXPECT_EQ(volumes->size(), 1u);
  EXPECT_EQ(threads_of_host_->Start(Vm(1), {}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(threads_of_host_->AnyOut());
}

TEST_F(HostThreadsTest, CallsALateEffectUnknownAndCountsItUntilItReturns) {
  Use(SimulatedCall::kCreateSeed);
  const Status late = threads_of_host_->CreateSeed(Seed(1), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnknown);
  EXPECT_EQ(gate_->Waiting(), 1);
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(1)), 1);
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(2)), 0);
  EXPECT_TRUE(threads_of_host_->AnyOut());
  EXPECT_FALSE(host_->HasVolume(Seed(1).name));

  // It took effect after all, and only now is its absence provable.
  OpenAndWait();
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(1)), 0);
  EXPECT_TRUE(host_->HasVolume(Seed(1).name));
}

// Whoever asked may have lost its lease: another worker must not take the machine for absent.
TEST_F(HostThreadsTest, CountsAnEffectWhileSomebodyStillWaitsForIt) {
  Use(SimulatedCall::kCreateSeed, Milliseconds(10'000));
  const auto asking = threads_->Spawn(
      "asking", [&](std::stop_token) { EXPECT_TRUE(threads_of_host_->CreateSeed(Seed(1), {})); });
  EXPECT_TRUE(Eventually([&] { return gate_->Waiting() == 1; }));
  EXPECT_FALSE(threads_of_host_->AnyOut());
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(1)), 1);
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(2)), 0);
  gate_->Open();
  asking->Join();
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(1)), 0);
}

TEST_F(HostThreadsTest, CallsALateLookUnavailable) {
  Use(SimulatedCall::kLook);
  auto late = threads_of_host_->Look(Vm(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(1)), 0);
  EXPECT_TRUE(threads_of_host_->AnyOut());
  OpenAndWait();
}

TEST_F(HostThreadsTest, IsUnavailableAtOnceWhileAllThreadsAreOutAndRecovers) {
  Use(SimulatedCall::kCreateSeed);
  for (int vm = 1; vm <= kThreads; ++vm) {
    EXPECT_EQ(threads_of_host_->CreateSeed(Seed(vm), {}).error().code, ErrorCode::kUnknown);
  }
  const int asked = gate_->Asked();
  const Instant began = clock_->Monotonic();
  auto refused = threads_of_host_->List();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_LT(clock_->Monotonic() - began, Milliseconds(50));
  EXPECT_EQ(gate_->Asked(), asked) << "the driver was called";
  // An effect that was never begun has not happened.
  EXPECT_EQ(threads_of_host_->CreateSeed(Seed(9), {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(threads_of_host_->CallsOut(Vm(9)), 0);

  OpenAndWait();
  EXPECT_TRUE(threads_of_host_->List());
}

TEST_F(HostThreadsTest, GoesAwayWhileACallIsOutAndTheCallEndsByItself) {
  Use(SimulatedCall::kCreateSeed);
  EXPECT_EQ(threads_of_host_->CreateSeed(Seed(1), {}).error().code, ErrorCode::kUnknown);
  threads_of_host_.reset();
  EXPECT_EQ(gate_->Waiting(), 1);
  EXPECT_GT(raw_.use_count(), 1);
  gate_->Open();
  EXPECT_TRUE(Eventually([&] { return raw_.use_count() == 1; }));
  EXPECT_TRUE(host_->HasVolume(Seed(1).name));
}

TEST_F(HostThreadsTest, LetsTheDriverGoWithIt) {
  Use(SimulatedCall::kReboot);
  EXPECT_TRUE(threads_of_host_->List());
  threads_of_host_.reset();
  EXPECT_EQ(raw_.use_count(), 1);
}

}  // namespace
}  // namespace vmonce::hypervisor
