#include "sim/world.h"

#include <gtest/gtest.h>

#include "sim/campaign.h"
#include "sim/workshop.h"

namespace vmonce::sim {
namespace {

constexpr std::uint64_t kSeeds = 200;

WorldReport RunSeed(std::uint64_t seed, Workshop& workshop) {
  WorldOptions options;
  options.seed = seed;
  return RunWorld(options, workshop);
}

TEST(WorldTest, TwoRunsOfASeedAreOneHistoryAndNoPromiseIsBroken) {
  Workshop workshop;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const WorldReport first = RunSeed(seed, workshop);
    EXPECT_EQ(first.invariant, "") << "seed " << seed << ": " << first.breach;
    EXPECT_EQ(RunSeed(seed, workshop).hash, first.hash) << "seed " << seed;
    hashes.insert(first.hash);
  }
  EXPECT_EQ(hashes.size(), kSeeds);
}

TEST(WorldTest, AHistoryDoesNotDependOnTheWorldsBeforeItInItsProcess) {
  Workshop used;
  RunSeed(1, used);
  Workshop fresh;
  EXPECT_EQ(RunSeed(2, used).hash, RunSeed(2, fresh).hash);
}

TEST(WorldTest, TellingAStoryDoesNotChangeIt) {
  Workshop workshop;
  WorldOptions told;
  told.seed = 3;
  told.story_lines = 1000;
  const WorldReport report = RunWorld(told, workshop);
  EXPECT_FALSE(report.story.empty());
  EXPECT_EQ(report.hash, RunSeed(3, workshop).hash);
}

TEST(WorldTest, EveryCreateEndsReadyWhereNothingGoesWrong) {
  Workshop workshop;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WorldOptions calm;
    calm.seed = seed;
    calm.faults = FaultChoice::kNone;
    const WorldReport report = RunWorld(calm, workshop);
    EXPECT_EQ(report.invariant, "") << report.breach;
    EXPECT_EQ(report.marks.count("timeline.item_failed"), 0U);
    for (const std::uint64_t fired : report.fired) EXPECT_EQ(fired, 0U);
  }
}

// Each found a fault of production code once; docs/simulation.md tells which.
TEST(WorldTest, TheSeedsThatTaughtSomethingStayUnbroken) {
  Workshop workshop;
  for (const std::uint64_t seed : {100U, 147U}) {
    const WorldReport report = RunSeed(seed, workshop);
    EXPECT_EQ(report.invariant, "") << "seed " << seed << ": " << report.breach;
  }
}

TEST(CampaignTest, TellsTheSeedOfABrokenWorldAndASmallerOneThatBreaksToo) {
  Campaign campaign;
  campaign.last = 50;
  campaign.world.mutant = Mutant::kKeyNotUnique;
  const auto report = Search(campaign);
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->failures.size(), 1U);
  const Failure& failure = report->failures.front();
  WorldOptions broken = campaign.world;
  broken.seed = failure.seed;
  const auto shrunk = Shrink(broken, failure.invariant);
  ASSERT_TRUE(shrunk.has_value());
  const auto again = RunApart(*shrunk);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->invariant, failure.invariant);
  EXPECT_EQ(again->requests, 1);
}

TEST(MutantTest, EveryNameIsReadBack) {
  for (std::size_t i = 0; i < kMutants; ++i) {
    const auto mutant = static_cast<Mutant>(i);
    EXPECT_EQ(ParseMutant(ToString(mutant)), mutant);
  }
  EXPECT_EQ(ParseMutant("none_of_these"), std::nullopt);
}

}  // namespace
}  // namespace vmonce::sim
