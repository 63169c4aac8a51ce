// Answers given again from memory, over a whole node: only while they are what the ledger would
// say.
#include <gtest/gtest.h>

#include "tests/node/world.h"

namespace vmonce::node {
namespace {

using model::VmState;
using std::chrono::hours;
using Kind = service::ChangeRequest::Kind;

// The replay of a create that is ready.
service::Answer Replayed(World& world, const std::string& key, const std::string& name,
                         int count = 1) {
  EXPECT_TRUE(world.Create(key, name, count).has_value());
  world.RunUntilQuiet();
  const service::Outcome answer = world.Create(key, name, count);
  EXPECT_TRUE(answer.has_value());
  return answer.value_or(service::Answer{});
}

TEST(Repeat, AReplayStandsUntilItsMachineChanges) {
  World world;
  const service::Answer answer = Replayed(world, "key-1", "web");
  ASSERT_TRUE(answer.reading.has_value());
  EXPECT_TRUE(world.Repeat(*answer.reading));
  EXPECT_TRUE(world.Repeat(*answer.reading));
  ASSERT_TRUE(world.Change(Kind::kDelete, answer.vms.front().id).has_value());
  EXPECT_FALSE(world.Repeat(*answer.reading)) << "marked for deletion";

  const service::Outcome deleting = world.Create("key-1", "web");
  ASSERT_TRUE(deleting && deleting->reading);
  EXPECT_EQ(deleting->vms.front().state, VmState::kDeleting);
  EXPECT_TRUE(world.Repeat(*deleting->reading));
  world.RunUntilQuiet();
  EXPECT_FALSE(world.Repeat(*deleting->reading)) << "deleted";
}

TEST(Repeat, AReplayOfABatchStandsUntilAnyOfItsMachinesChanges) {
  World world;
  const service::Answer answer = Replayed(world, "key-1", "web", 3);
  ASSERT_TRUE(answer.reading.has_value());
  EXPECT_TRUE(world.Repeat(*answer.reading));
  ASSERT_TRUE(world.Change(Kind::kStop, answer.vms.back().id).has_value());
  EXPECT_FALSE(world.Repeat(*answer.reading));
}

// report 53
TEST(Repeat, AReplayEndsWithItsRecord) {
  World world;
  const service::Answer ready = Replayed(world, "key-1", "web");
  ASSERT_TRUE(world.Change(Kind::kDelete, ready.vms.front().id).has_value());
  world.RunUntilQuiet();
  const service::Outcome gone = world.Create("key-1", "web");
  ASSERT_TRUE(gone && gone->reading);
  world.Advance(hours(24 * 31));
  EXPECT_TRUE(world.Repeat(*gone->reading)) << "until the record has gone it is known";
  world.SweepLedger();
  EXPECT_FALSE(world.Repeat(*gone->reading));
  EXPECT_EQ(world.Create("key-1", "web").error().code, "idempotency_key_expired");
}

TEST(Repeat, WhatIsUnfinishedOrMayBeTriedAnewIsReadEachTime) {
  World world;
  ASSERT_TRUE(world.Create("key-1", "web").has_value());
  const service::Outcome unfinished = world.Create("key-1", "web");
  ASSERT_TRUE(unfinished.has_value());
  EXPECT_TRUE(unfinished->is_replay);
  EXPECT_FALSE(unfinished->reading.has_value());
  world.RunUntilQuiet();

  hypervisor::Fault refused;
  refused.instead = Error{ErrorCode::kRefused, "made up"};
  world.faults().Add(hypervisor::SimulatedCall::kDefine, refused);
  ASSERT_TRUE(world.Create("key-2", "db").has_value());
  world.RunUntilQuiet();
  const service::Outcome failed = world.Create("key-2", "db");
  EXPECT_FALSE(failed.has_value() && failed->reading.has_value());
}

TEST(Repeat, IsCountedAndToldLikeAnyDuplicate) {
  World world;
  const service::Answer answer = Replayed(world, "key-1", "web");
  ASSERT_TRUE(answer.reading.has_value());
  world.FlushDuplicates();
  const std::int64_t before = world.OutcomeCount("replayed");
  ASSERT_TRUE(world.Repeat(*answer.reading));
  ASSERT_TRUE(world.Repeat(*answer.reading));
  EXPECT_EQ(world.OutcomeCount("replayed"), before + 2);
  world.FlushDuplicates();
  EXPECT_EQ(world.Timeline(answer.operation->id).back(), "duplicate_served");
  EXPECT_TRUE(world.Repeat(*answer.reading)) << "a line of the timeline changes no answer";
}

}  // namespace
}  // namespace vmonce::node
