#include "client/intent_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/system.h"
#include "base/temp_dir.h"
#include "client/fake_transport.h"
#include "model/limits.h"

namespace vmonce::client {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUrl = "http://127.0.0.1:8080";

class IntentStoreTest : public testing::Test {
 protected:
  Intent Make(std::string key, std::string body = R"({"image":"tiny"})") {
    return Intent{std::move(key), std::string(kUrl), std::move(body), clock_.Now()};
  }

  TempDir dir_;
  FakeClock clock_;
  IntentStore store_{dir_.File("state/intents"), clock_};
};

TEST_F(IntentStoreTest, KeepsAnIntentThatOnlyItsUserCanRead) {
  const auto held = store_.Save(Make("k-1"));
  ASSERT_TRUE(held) << held.error().detail;
  struct stat status{};
  ASSERT_EQ(stat((*held)->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(dir_.File("state/intents").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(*store_.List(), std::vector<Intent>{Make("k-1")});
}

TEST_F(IntentStoreTest, LeavesNothingOfAFinishedIntent) {
  auto held = store_.Save(Make("k-1"));
  ASSERT_TRUE((*held)->Finish());
  EXPECT_TRUE(fs::is_empty(dir_.File("state/intents")));
}

TEST_F(IntentStoreTest, FindsTheSameUnfinishedIntentAgain) {
  {
    auto dropped = store_.Save(Make("k-1"));
  }
  const auto found = store_.HoldSame(kUrl, R"({"image":"tiny"})");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->intent().key, "k-1");
}

TEST_F(IntentStoreTest, DoesNotTakeAnotherBodyOrServerForTheSame) {
  {
    auto dropped = store_.Save(Make("k-1"));
  }
  EXPECT_EQ(*store_.HoldSame(kUrl, R"({"image":"other"})"), nullptr);
  EXPECT_EQ(*store_.HoldSame("http://elsewhere", R"({"image":"tiny"})"), nullptr);
}

TEST_F(IntentStoreTest, DoesNotShareTheKeyOfACommandThatStillRuns) {
  const auto running = store_.Save(Make("k-1"));
  ASSERT_TRUE(running);
  EXPECT_EQ(*store_.HoldSame(kUrl, R"({"image":"tiny"})"), nullptr);
  EXPECT_EQ(store_.Hold("k-1").error().code, ErrorCode::kConflict);
}

TEST_F(IntentStoreTest, NeverShowsAnIntentThatIsJustBeingSavedAsUnfinished) {
  const auto threads = NewSystemThreads();
  // The files' own times are real, and a listing removes temporary ones that are old.
  const auto clock = NewSystemClock();
  const std::string directory = dir_.File("state/intents");
  IntentStore mine(directory, *clock);
  std::atomic<bool> done = false;
  std::atomic<int> stolen = 0;
  auto thief = threads->Spawn("thief", [&](const std::stop_token&) {
    IntentStore store(directory, *clock);
    while (!done) {
      const auto taken = store.HoldSame(kUrl, R"({"image":"tiny"})");
      if (taken && *taken) ++stolen;
    }
  });
  for (int i = 0; i < 200; ++i) {
    const auto held =
        mine.Save({fmt::format("k-{}", i), std::string(kUrl), R"({"image":"tiny"})", clock->Now()});
    EXPECT_TRUE(held) << held.error().detail;
    if (held) {
      EXPECT_TRUE((*held)->Finish());
    }
  }
  done = true;
  thief.reset();
  EXPECT_EQ(stolen, 0);
}

TEST_F(IntentStoreTest, DoesNotContinueAnOldIntentUnasked) {
  {
    auto dropped = store_.Save(Make("k-1"));
  }
  clock_.Advance(model::limits::kClientIntentReuse + Milliseconds(1));
  EXPECT_EQ(*store_.HoldSame(kUrl, R"({"image":"tiny"})"), nullptr);
  EXPECT_TRUE(store_.Hold("k-1"));
}

TEST_F(IntentStoreTest, NeverReplacesTheIntentOfAKey) {
  {
    auto dropped = store_.Save(Make("k-1"));
  }
  EXPECT_EQ(store_.Save(Make("k-1", "{}")).error().code, ErrorCode::kConflict);
  EXPECT_EQ((*store_.Hold("k-1"))->intent().body, R"({"image":"tiny"})");
}

TEST_F(IntentStoreTest, TellsThatAKeyHasNoIntent) {
  EXPECT_EQ(store_.Hold("never").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store_.List()->empty());
}

TEST_F(IntentStoreTest, PassesOverFilesThatAreNoIntents) {
  {
    auto dropped = store_.Save(Make("k-1"));
  }
  std::ofstream(dir_.File("state/intents/broken.json")) << "{";
  std::ofstream(dir_.File("state/intents/newer.json")) << R"({"version":2})";
  EXPECT_EQ(store_.List()->size(), 1u);
}

TEST_F(IntentStoreTest, CannotKeepAKeyWhereADirectoryCannotBe) {
  std::ofstream(dir_.File("file")) << "";
  IntentStore store(dir_.File("file/intents"), clock_);
  EXPECT_FALSE(store.Save(Make("k-1")));
}

}  // namespace
}  // namespace vmonce::client
