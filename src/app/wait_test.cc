#include "app/fake_world.h"
#include "app/vm_goal.h"
#include "base/json.h"

namespace vmonce::app {
namespace {

using client::FakeTransport;

constexpr std::string_view kId = "01a22e32-d4b9-752d-a0a8-dca2014a5837";
constexpr std::string_view kOperation = "0b8a7c52-0000-7000-8000-000000000001";

std::string Vm(std::string_view state, std::string_view observed, std::string_view more = "") {
  return fmt::format(R"({{"id":"{}","name":"web","state":"{}","observed":"{}"{}}})", kId, state,
                     observed, more);
}

struct Judged {
  std::string_view goal;
  std::string vm;
  GoalState state;
};

TEST(VmGoal, IsJudgedByWhatTheServerSaysNow) {
  const Judged rows[] = {
      {"accepted", Vm("pending", "unknown"), GoalState::kReached},
      {"started", Vm("creating", "running"), GoalState::kReached},
      {"started", Vm("ready", "stopped"), GoalState::kNotYet},
      {"started", Vm("failed", "absent"), GoalState::kNever},
      {"ready", Vm("ready", "running"), GoalState::kReached},
      {"ready", Vm("missing", "absent"), GoalState::kNotYet},
      {"ready", Vm("deleting", "running"), GoalState::kNever},
      {"stopped", Vm("ready", "stopped"), GoalState::kReached},
      // Defined and not yet started is not what "stopped" asks for.
      {"stopped", Vm("creating", "stopped"), GoalState::kNotYet},
      {"deleted", Vm("deleted", "absent"), GoalState::kReached},
      {"deleted", Vm("deleting", "running"), GoalState::kNotYet},
      {"address", Vm("ready", "running", R"(,"network":"lan","addresses":["10.0.0.7"])"),
       GoalState::kReached},
      {"address", Vm("ready", "running", R"(,"network":"lan","addresses":[])"), GoalState::kNotYet},
      {"address",
       Vm("ready", "running",
          R"(,"network":"user","forwards":[{"host_address":"127.0.0.1","host_port":2222}])"),
       GoalState::kReached},
      {"address", Vm("ready", "running", R"(,"network":"user")"), GoalState::kNever},
  };
  for (const Judged& row : rows) {
    const auto goal = ParseVmGoal(row.goal);
    ASSERT_TRUE(goal) << row.goal;
    EXPECT_EQ(JudgeGoal(*ParseStrictJson(row.vm), *goal).state, row.state)
        << row.goal << " of " << row.vm;
  }
  EXPECT_EQ(ParseVmGoal("happy"), std::nullopt);
}

class Wait : public FakeWorld {
 protected:
  void ServeVm(std::vector<std::string> states) {
    ExpectJson("GET /v1/operations/" + std::string(kId), 404, R"({"code":"operation_not_found"})");
    std::vector<Answer> answers;
    for (std::string& vm : states) answers.push_back(FakeTransport::Json(200, std::move(vm)));
    Expect("GET /v1/vms/" + std::string(kId), std::move(answers));
  }
  const std::string kVm{kId};
};

TEST_F(Wait, EndsWhenTheVmIsAsAskedAndPrintsIt) {
  ServeVm({Vm("creating", "unknown"), Vm("creating", "unknown"), Vm("ready", "running")});
  EXPECT_EQ(Run({"wait", kVm, "--for", "ready", "-o", "name"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "web\n");
  EXPECT_TRUE(Said("web is ready")) << terminal_.err;
}

TEST_F(Wait, EndsWithOneWhenItCanNeverBe) {
  ServeVm({Vm("creating", "unknown"),
           Vm("failed", "absent",
              R"(,"operation":"op-1","failure":{"code":"no_capacity","detail":"no room"})")});
  EXPECT_EQ(Run({"wait", kVm, "--for", "started"}), 1);
  for (const char* text :
       {"it has failed", "cause: no room", "repair: ", "code: no_capacity", "operation: op-1"}) {
    EXPECT_TRUE(Said(text)) << text << " in " << terminal_.err;
  }
  EXPECT_EQ(terminal_.out, "");
}

TEST_F(Wait, EndsWithFourAndTheWayBackWhenItsTimeIsOver) {
  ServeVm({Vm("ready", "running")});
  EXPECT_EQ(Run({"wait", kVm, "--for", "stopped", "--timeout", "3s"}), 4);
  EXPECT_TRUE(Said("go on with: vmonce wait web --for stopped")) << terminal_.err;
  EXPECT_LE(clock_.Elapsed(), Milliseconds(3'000));
}

TEST_F(Wait, CtrlCDetachesAndSaysSo) {
  ServeVm({Vm("creating", "unknown")});
  threads_.on_sleep = [this](Milliseconds) { stop_.request_stop(); };
  EXPECT_EQ(Run({"wait", kVm, "--for", "ready"}), 130);
  EXPECT_TRUE(Said("detached: nothing was changed")) << terminal_.err;
}

TEST_F(Wait, GoesOnWhenTheServerIsRestarted) {
  ServeVm({});
  Expect("GET /v1/vms/" + kVm,
         {FakeTransport::Json(200, Vm("deleting", "running")), FakeTransport::Refused(),
          FakeTransport::Lost(), FakeTransport::Json(200, Vm("deleted", "absent"))});
  EXPECT_EQ(Run({"wait", kVm, "--for", "deleted"}), 0) << terminal_.err;
}

TEST_F(Wait, TakesAnOperationAndWaitsForItsVms) {
  ExpectJson("GET /v1/operations/" + std::string(kOperation), 200,
             fmt::format(R"({{"id":"{}","state":"running","vms":["{}"]}})", kOperation, kId));
  ServeVm({Vm("ready", "running")});
  EXPECT_EQ(Run({"wait", std::string(kOperation), "--for", "started", "-o", "name"}), 0);
  EXPECT_EQ(terminal_.out, "web\n");
}

TEST_F(Wait, RefusesAnUnknownGoalAsUsage) {
  EXPECT_EQ(Run({"wait", kVm, "--for", "happy"}), 2);
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(Wait, SaysNotFoundAndDeniedWithTheirOwnCodes) {
  ServeVm({});
  ExpectJson("GET /v1/vms/" + kVm, 404, R"({"code":"vm_not_found","detail":"none"})");
  EXPECT_EQ(Run({"wait", kVm, "--for", "ready"}), 6);
  ExpectJson("GET /v1/operations/" + kVm, 403, R"({"code":"forbidden","detail":"no"})");
  EXPECT_EQ(Run({"wait", kVm}), 7);
}

}  // namespace
}  // namespace vmonce::app
