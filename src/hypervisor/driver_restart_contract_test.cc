// A service with living guests is killed, and another one starts: each is a process of its own,
// since libvirt's embedded state lasts as long as its process.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/process.h"
#include "hypervisor/driver_contract_beds.h"
#include "hypervisor/embedded_root.h"
#include "hypervisor/factory.h"

namespace vmonce::hypervisor {
namespace {

constexpr const char* kRootVariable = "VMONCE_TEST_ROOT";
constexpr const char* kGuestVariable = "VMONCE_GUEST_DIR";

model::VmId TheVm() { return {*ParseUuid("01900000-0000-7000-8000-00000000beef")}; }
std::string TheName() { return model::DomainName(TestMarker().ledger, TheVm()); }

// What one service process of the test has.
class Service {
 public:
  Service() {
    auto made = NewHypervisor(
        {.id = TestMarker().host, .uri = "qemu:///embed?root=" + *Environment(kRootVariable)},
        *clock_, *threads_, *random_, *logger_);
    CHECK_MSG(made.has_value(), made ? "" : made.error().detail);
    driver_ = *std::move(made);
  }
  ports::Hypervisor& driver() { return *driver_; }

 private:
  const std::unique_ptr<Clock> clock_ = NewSystemClock();
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  const std::unique_ptr<Random> random_ = NewSystemRandom();
  const std::unique_ptr<Logger> logger_ = NewNullLogger();
  std::unique_ptr<HostThreads> driver_;
};

// Run by the test below, in processes of their own.
// tidy: allow skipped-test: the test below runs it, in a process of its own
TEST(RestartStep, DISABLED_StartsAGuestAndIsKilled) {
  Service service;
  auto facts = service.driver().Connect(TestMarker(), ports::MarkerPolicy::kWriteIfNone);
  ASSERT_TRUE(facts) << facts.error().detail;
  EXPECT_TRUE(facts->wrote_marker);
  const ports::DomainOrder order{
      .vm = TheVm(),
      .name = TheName(),
      .label = {.ledger = TestMarker().ledger,
                .host = TestMarker().host,
                .project = {"default"},
                .fingerprint = std::string(64, 'b'),
                .operation = {*ParseUuid("01900000-0000-7000-8000-000000000001")}},
      .spec = {.image = GuestImage(), .memory_mib = 128},
      .mac = model::MacAddress(TheVm())};
  ASSERT_TRUE(service.driver().Define(order, {.fence = {3}}));
  const Status started = service.driver().Start(TheVm(), {.fence = {3}});
  ASSERT_TRUE(started) << started.error().detail;
  kill(getpid(), SIGKILL);
}

// tidy: allow skipped-test: the test below runs it, in a process of its own
TEST(RestartStep, DISABLED_FindsTheGuestAndRemovesIt) {
  Service service;
  auto facts = service.driver().Connect(TestMarker(), ports::MarkerPolicy::kRequire);
  ASSERT_TRUE(facts) << facts.error().detail;
  auto seen = service.driver().Look(TheVm());
  ASSERT_TRUE(seen && *seen);
  EXPECT_EQ((*seen)->power, model::Observed::kRunning);
  ASSERT_TRUE((*seen)->label);
  EXPECT_EQ((*seen)->label->fence.value, 3);
  EXPECT_EQ(service.driver().Destroy(TheVm(), {.fence = {2}}).error().code, ErrorCode::kFenced);
  EXPECT_TRUE(service.driver().StampFence(TheVm(), {.fence = {4}}));
  EXPECT_TRUE(service.driver().Start(TheVm(), {.fence = {4}}));
  EXPECT_TRUE(service.driver().Destroy(TheVm(), {.fence = {4}}));
  EXPECT_TRUE(service.driver().Undefine(TheVm(), {.fence = {4}}));
  seen = service.driver().Look(TheVm());
  EXPECT_TRUE(seen && !*seen);
}

ProcessResult RunStep(const std::string& step, const std::string& root) {
  ProcessSpec spec{.argv = {"/proc/self/exe", "--gtest_also_run_disabled_tests"},
                   .timeout = Milliseconds(120'000)};
  spec.argv.push_back(fmt::format("--gtest_filter=RestartStep.DISABLED_{}", step));
  spec.environment.push_back(fmt::format("{}={}", kRootVariable, root));
  // What a sanitizer was told counts for that process too.
  for (const char* passed_on : {kGuestVariable, "ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    spec.environment.push_back(
        fmt::format("{}={}", passed_on, Environment(passed_on).value_or("")));
  }
  auto ran = RunProcess(spec);
  EXPECT_TRUE(ran) << ran.error().detail;
  return ran ? *ran : ProcessResult();
}

TEST(Restart, FindsItsGuestAliveAfterAKillAndNobodyElseHasTheRoot) {
  const TempDir root;
  const ProcessResult killed = RunStep("StartsAGuestAndIsKilled", root.path());
  EXPECT_EQ(killed.signal, SIGKILL) << killed.stdout_text;
  auto alive = HasQemuProcess(TheName());
  EXPECT_TRUE(alive && *alive);

  {
    auto taken = EmbeddedRoot::Open(root.path());
    ASSERT_TRUE(taken) << "the killed process still has the root: " << taken.error().detail;
    auto again = EmbeddedRoot::Open(root.path());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kUnavailable);
  }

  const ProcessResult found = RunStep("FindsTheGuestAndRemovesIt", root.path());
  EXPECT_TRUE(found.Succeeded()) << found.Describe() << found.stdout_text << found.stderr_text;
  alive = HasQemuProcess(TheName());
  EXPECT_TRUE(alive && !*alive);
}

}  // namespace
}  // namespace vmonce::hypervisor
