#include "api/rest/json_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/rest/contract_check.h"
#include "api/rest/samples.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
using model::OperationState;
using testing::IsEmpty;

json::object Shown(const model::Vm& vm) { return json::parse(TextOf(vm)).get_object(); }
json::object Shown(const model::Operation& operation, const StepName& step_name) {
  return json::parse(TextOf(operation, step_name)).get_object();
}

class JsonOfTest : public testing::Test {
 protected:
  const ContractCheck contract_;
};

TEST_F(JsonOfTest, AVmIsAsTheContractSaysAndTellsEverything) {
  const json::object vm = Shown(SampleVm());
  EXPECT_THAT(contract_.Violations("Vm", vm), IsEmpty());
  const json::value expected = json::parse(R"({
    "id": "01890a5d-ac96-774b-bcce-b302099a8057", "name": "web", "state": "ready",
    "desired": "running", "observed": "running", "stopped_by": null, "restart": "host-failure",
    "restarts": 0, "stuck": false, "image": "debian-12", "cpus": 1,
    "memory_mib": 512, "disk_gib": 0, "hostname": "web", "network": "user",
    "mac": "52:54:00:9a:80:57", "host": "local", "forwards": [],
    "addresses": [], "labels": {"tier": "front"},
    "operation": "01890a5d-ac96-774b-bcce-b302099a8000", "idempotency_key_prefix": "k-12…",
    "index": 2, "version": 7, "created_at": "1970-01-01T12:00:00.000Z",
    "updated_at": "1970-01-01T12:00:01.000Z", "deleted_at": "1970-01-01T12:00:02.000Z",
    "failure": {"code": "no_capacity", "detail": "full", "retryable": true},
    "console_url": "/v1/vms/01890a5d-ac96-774b-bcce-b302099a8057/console"})");
  EXPECT_EQ(json::value(vm), expected);
}

TEST_F(JsonOfTest, AVmShowsTheWaysInToIt) {
  model::Vm vm = SampleVm();
  vm.spec.forwards = {{.guest_port = 22}, {.guest_port = 53, .protocol = model::Protocol::kUdp}};
  json::object shown = Shown(vm);
  EXPECT_THAT(contract_.Violations("Vm", shown), IsEmpty());
  EXPECT_EQ(shown.at("forwards"), json::parse(R"([
    {"guest_port": 22, "protocol": "tcp", "host_address": null, "host_port": null},
    {"guest_port": 53, "protocol": "udp", "host_address": null, "host_port": null}])"));
  vm.forwards = vm.spec.forwards;
  vm.forwards[0].host_port = 20022;
  vm.forwards[0].host_address = "127.0.0.1";
  vm.addresses = {"192.168.122.7"};
  shown = Shown(vm);
  EXPECT_THAT(contract_.Violations("Vm", shown), IsEmpty());
  EXPECT_EQ(shown.at("forwards").at(0).at("host_port"), 20022);
  EXPECT_EQ(shown.at("forwards").at(0).at("host_address"), "127.0.0.1");
  EXPECT_EQ(shown.at("addresses").at(0), "192.168.122.7");
}

TEST_F(JsonOfTest, AVmThatIsNowhereYetLeavesOutWhatIsNotKnown) {
  model::Vm vm = SampleVm();
  vm.host.reset();
  vm.failure.reset();
  vm.deleted.reset();
  const json::object shown = Shown(vm);
  EXPECT_THAT(contract_.Violations("Vm", shown), IsEmpty());
  EXPECT_TRUE(shown.at("host").is_null());
  EXPECT_FALSE(shown.contains("failure"));
  EXPECT_FALSE(shown.contains("deleted_at"));
}

TEST_F(JsonOfTest, AnOperationShowsItsItemsAndNoSecret) {
  for (const OperationState state :
       {OperationState::kAccepted, OperationState::kVerifying, OperationState::kFailed}) {
    const json::object shown = Shown(SampleOperation(state), &SampleStepName);
    EXPECT_THAT(contract_.Violations("Operation", shown), IsEmpty());
    EXPECT_EQ(json::serialize(shown).find("secret"), std::string::npos);
    EXPECT_EQ(json::serialize(shown).find("sealed"), std::string::npos);
  }
  const json::object shown = Shown(SampleOperation(OperationState::kRunning), &SampleStepName);
  EXPECT_EQ(shown.at("items").at(0).at("step_name"), "disk");
  EXPECT_EQ(shown.at("vms").at(0), json::value(ToString(kVmUuid)));
  const json::object failed = Shown(SampleOperation(OperationState::kFailed), &SampleStepName);
  EXPECT_EQ(failed.at("items").at(0).at("step_name"), "");
}

TEST_F(JsonOfTest, EveryWordOfAnEnumIsInTheContract) {
  model::Vm vm = SampleVm();
  for (int i = 0; i <= static_cast<int>(model::VmState::kDeleted); ++i) {
    vm.state = static_cast<model::VmState>(i);
    EXPECT_THAT(contract_.Violations("Vm", Shown(vm)), IsEmpty());
  }
  for (int i = 0; i <= static_cast<int>(model::Observed::kAbsent); ++i) {
    vm.observed = static_cast<model::Observed>(i);
    EXPECT_THAT(contract_.Violations("Vm", Shown(vm)), IsEmpty());
  }
  for (int i = 0; i <= static_cast<int>(model::StopCause::kHost); ++i) {
    vm.stopped_by = static_cast<model::StopCause>(i);
    EXPECT_THAT(contract_.Violations("Vm", Shown(vm)), IsEmpty());
  }
  for (int i = 0; i <= static_cast<int>(model::RestartPolicy::kNever); ++i) {
    vm.restart = static_cast<model::RestartPolicy>(i);
    EXPECT_THAT(contract_.Violations("Vm", Shown(vm)), IsEmpty());
  }
  model::Operation operation = SampleOperation(OperationState::kRunning);
  for (int i = 0; i <= static_cast<int>(OperationState::kCancelled); ++i) {
    operation.state = static_cast<OperationState>(i);
    EXPECT_THAT(contract_.Violations("Operation", Shown(operation, &SampleStepName)), IsEmpty());
  }
  for (int i = 0; i <= static_cast<int>(model::OperationKind::kUpdate); ++i) {
    operation.kind = static_cast<model::OperationKind>(i);
    EXPECT_THAT(contract_.Violations("Operation", Shown(operation, &SampleStepName)), IsEmpty());
  }
  for (int i = 0; i <= static_cast<int>(model::ItemPhase::kCancelled); ++i) {
    operation.items[0].phase = static_cast<model::ItemPhase>(i);
    EXPECT_THAT(contract_.Violations("Operation", Shown(operation, &SampleStepName)), IsEmpty());
  }
}

TEST_F(JsonOfTest, AHostShowsNoPassword) {
  service::HostView view;
  view.host.id = {"remote"};
  view.host.uri = "qemu+ssh://admin:hunter2@node/system";
  view.status.problem = "cannot open qemu+ssh://admin:hunter2@node/system: refused";
  view.status.last_error = view.status.problem;
  view.status.last_error_at = view.status.since = kNoon;
  const json::object shown = JsonOf(view);
  EXPECT_THAT(contract_.Violations("Host", shown), IsEmpty());
  EXPECT_EQ(shown.at("since"), "1970-01-01T12:00:00.000Z");
  EXPECT_EQ(shown.at("last_error").at("at"), "1970-01-01T12:00:00.000Z");
  EXPECT_EQ(json::serialize(shown).find("hunter2"), std::string::npos);
  EXPECT_TRUE(shown.at("accelerator").is_null());
  view.status.facts = ports::HostFacts{"QEMU 7.2.0", "tcg", {}, false};
  EXPECT_THAT(contract_.Violations("Host", JsonOf(view)), IsEmpty());
  EXPECT_EQ(JsonOf(view).at("accelerator"), "tcg");
}

TEST_F(JsonOfTest, HidesPasswordsInUris) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"qemu:///embed?root=/var/lib/vmonce", "qemu:///embed?root=/var/lib/vmonce"},
      {"qemu+ssh://node:22/system", "qemu+ssh://node:22/system"},
      {"qemu+ssh://me@node/system", "qemu+ssh://me@node/system"},
      {"qemu+ssh://me:pw@node:22/system", "qemu+ssh://me:***@node:22/system"},
      {"qemu+ssh://me:p@w:x@node/system", "qemu+ssh://me:***@node/system"},
      {"qemu+ssh://me:pw@node", "qemu+ssh://me:***@node"},
      {"esx://h/?password=pw&x=1", "esx://h/?password=***&x=1"},
      {"esx://h/?x=1&passphrase=pw", "esx://h/?x=1&passphrase=***"},
      {"qemu+ssh://h/system?keyfile=/a@b:c", "qemu+ssh://h/system?keyfile=/a@b:c"},
      {"test:///default", "test:///default"},
      {"", ""},
  };
  for (const auto& [uri, shown] : cases) EXPECT_EQ(WithoutPassword(uri), shown);
}

TEST_F(JsonOfTest, ATimelineBeginsWithTheAcceptance) {
  const model::Operation operation = SampleOperation(OperationState::kRunning);
  model::TimelineEntry leased;
  leased.at = kNoon + std::chrono::seconds(1);
  leased.replica = "r-1";
  leased.event = "leased";
  const json::array made = TimelineOf(operation, {leased});
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made.at(0).at("event"), "accepted");
  EXPECT_EQ(made.at(0).at("at"), "1970-01-01T12:00:00.000Z");
  EXPECT_EQ(made.at(1).at("replica"), "r-1");
  EXPECT_THAT(contract_.Violations("Timeline", json::object{{"items", made}}), IsEmpty());
  model::TimelineEntry accepted = leased;
  accepted.event = "accepted";
  EXPECT_EQ(TimelineOf(operation, {accepted, leased}).size(), 2u);
}

TEST_F(JsonOfTest, TheRestIsAsTheContractSays) {
  model::Image image;
  image.name = "debian-12";
  image.aliases = {"debian"};
  EXPECT_THAT(contract_.Violations("Image", JsonOf(image)), IsEmpty());
  model::StoredImage stored;
  stored.name = "tiny";
  stored.disk = stored.kernel = stored.initrd = Sha256("a file");
  stored.disk_format = "raw";
  stored.added = kNoon;
  EXPECT_THAT(contract_.Violations("Image", JsonOf(stored)), IsEmpty());
  EXPECT_EQ(JsonOf(stored).at("initrd_sha256").as_string(), ToHex(Sha256("a file")));
  workflows::ReconcileReport report;
  report.host = {"local"};
  report.problem = "does not answer";
  EXPECT_THAT(contract_.Violations("ReconcileReport", JsonOf(report)), IsEmpty());
  const Capabilities capabilities{
      .version = "0.1.0",
      .retention = {},
      .quotas = service::Quotas(service::ProjectQuota{{1, 2, 3, 4}, 5})};
  const json::object shown = JsonOf(capabilities, {{"web"}}, {1, 1, 1, 1});
  EXPECT_EQ(shown.at("project"), "web");
  EXPECT_EQ(shown.at("role"), "admin");
  EXPECT_THAT(contract_.Violations("Capabilities", shown), IsEmpty());
  EXPECT_THAT(contract_.Violations("QuotaAmounts", JsonOf(service::ProjectQuota{{1, 2, 3, 4}, 5})),
              IsEmpty());
  EXPECT_EQ(shown.at("idempotency").at("mismatch_status"), 422);
  EXPECT_EQ(shown.at("idempotency").at("retention_s"), 30 * 24 * 3600);
  EXPECT_EQ(shown.at("quota").at("disk_gib"), 4);
}

}  // namespace
}  // namespace vmonce::rest
