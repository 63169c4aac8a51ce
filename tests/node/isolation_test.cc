// What one project can learn of another: nothing that is told, and no work that differs, counted in
// calls through the ledger's door instead of measured in time.
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using Kind = service::ChangeRequest::Kind;

struct Told {
  std::string code;  // "" when it was accepted.
  std::string detail;
  int calls = 0;

  bool operator==(const Told&) const = default;
};

void PrintTo(const Told& told, std::ostream* out) {
  *out << told.code << " (" << told.detail << ") after " << told.calls << " calls";
}

// What `ask` is told, with `id` masked.
Told Hear(World& world, const std::string& id, const std::function<service::Outcome()>& ask) {
  const int before = world.crash().calls();
  const service::Outcome outcome = ask();
  Told told;
  told.calls = world.crash().calls() - before;
  if (outcome) return told;
  told.code = outcome.error().code;
  told.detail = outcome.error().detail;
  if (const auto at = told.detail.find(id); at != std::string::npos) {
    told.detail.replace(at, id.size(), "ID");
  }
  return told;
}

class Isolation : public testing::Test {
 protected:
  Isolation() {
    world_.SetProject("theirs");
    const service::Outcome made = world_.Create("their-key", "their-name");
    vm_ = made->vms.front().id;
    operation_ = made->operation->id;
    world_.RunUntilQuiet();
    world_.SetProject("mine");
  }

  World world_;
  model::VmId vm_;
  model::OperationId operation_;
  const Uuid never_ = *ParseUuid("01890a5d-ac96-774b-bcce-b302099a8057");
};

// report 64
TEST_F(Isolation, AnothersVmIsAsOneThatNeverWas) {
  for (const Kind kind : {Kind::kDelete, Kind::kStart, Kind::kStop, Kind::kReboot, Kind::kUpdate}) {
    const auto ask = [&](const model::VmId& vm) {
      return Hear(world_, ToString(vm), [&] { return world_.Change(kind, vm, "my-key"); });
    };
    const Told never = ask({never_});
    EXPECT_EQ(never.code, "vm_not_found");
    EXPECT_EQ(ask(vm_), never) << static_cast<int>(kind);
  }
  EXPECT_EQ(world_.VmRow(vm_).state, model::VmState::kReady);
}

TEST_F(Isolation, AnothersOperationIsAsOneThatNeverWas) {
  const auto ask = [&](const model::OperationId& operation) {
    return Hear(world_, ToString(operation), [&] { return world_.Cancel(operation); });
  };
  const Told never = ask({never_});
  EXPECT_EQ(never.code, "operation_not_found");
  EXPECT_EQ(ask(operation_), never);
}

// report 64
TEST_F(Isolation, AnothersKeyAndNameAreAsUnusedOnes) {
  const auto ask = [&](const std::string& key, const std::string& name) {
    return Hear(world_, "-", [&] { return world_.Create(key, name); });
  };
  EXPECT_EQ(ask("their-key", "their-name"), ask("no-key", "no-name"));
}

}  // namespace
}  // namespace vmonce::node
