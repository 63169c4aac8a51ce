// A file of the configuration that changes under the disks that were made over it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using model::OperationState;
using model::VmState;
using Kind = service::ChangeRequest::Kind;

class ImageFile : public testing::Test {
 protected:
  // As of now, by the world's clock.
  void Replace() {
    world_.Advance(Milliseconds(1'000));
    file_ = FileIdentity{++size_, 1, 1, world_.clock().Now()};
    world_.Advance(Milliseconds(1'000));
  }
  model::Vm Make(const std::string& key) {
    const service::Outcome answer = world_.Create(key, key);
    EXPECT_TRUE(answer.has_value()) << answer.error().detail;
    world_.RunUntilQuiet();
    return world_.VmRow(answer->vms.front().id);
  }

  std::int64_t size_ = 1;
  std::optional<FileIdentity> file_ = FileIdentity{1, 1, 1, {}};
  World world_{{.look_at_file = [this](const std::string&) { return file_; }}};
};

TEST_F(ImageFile, ThatChangedMakesNoMoreVmsAndLeavesThoseThatStand) {
  const model::Vm first = Make("first");
  EXPECT_EQ(first.state, VmState::kReady);
  const std::optional<FileIdentity> before = file_;
  Replace();
  world_.LookAtImageFiles();
  const service::Outcome refused = world_.Create("second", "second");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "image_changed");
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("/images/tiny.qcow2"));
  EXPECT_EQ(world_.VmRow(first.id).state, VmState::kReady);
  EXPECT_EQ(world_.host().Find(first.id)->power, model::Observed::kRunning);
  // The key of a known request is answered all the same.
  EXPECT_TRUE(world_.Create("first", "first").has_value());
  // Put back: the same key makes the VM.
  file_ = before;
  world_.LookAtImageFiles();
  EXPECT_EQ(Make("second").state, VmState::kReady);
  EXPECT_EQ(world_.Audit(), "");
}

TEST_F(ImageFile, ThatChangedSinceItWasLookedAtMakesNoDisk) {
  Make("first");
  Replace();
  const model::Vm second = Make("second");
  EXPECT_EQ(second.state, VmState::kFailed);
  const model::Operation operation = world_.OperationRow(second.operation);
  ASSERT_TRUE(operation.failure);
  EXPECT_EQ(operation.failure->code, "image_changed");
  EXPECT_TRUE(operation.failure->passing);
  EXPECT_EQ(world_.Audit(), "");
}

TEST_F(ImageFile, MayBeReplacedOnceNoDiskStandsOnIt) {
  const model::Vm first = Make("first");
  ASSERT_TRUE(world_.Change(Kind::kDelete, first.id).has_value());
  world_.RunUntilQuiet();
  Replace();
  EXPECT_EQ(Make("second").state, VmState::kReady);
  world_.LookAtImageFiles();
  EXPECT_EQ(Make("third").state, VmState::kReady);
  // It is missed, too, when it is gone.
  file_.reset();
  world_.LookAtImageFiles();
  EXPECT_FALSE(world_.Create("fourth", "fourth").has_value());
}

TEST_F(ImageFile, IsRememberedByTheNextProcess) {
  Make("first");
  Replace();
  world_.Restart();
  world_.LookAtImageFiles();
  EXPECT_FALSE(world_.Create("second", "second").has_value());
}

}  // namespace
}  // namespace vmonce::node
