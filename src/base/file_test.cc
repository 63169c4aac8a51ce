#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/system.h"
#include "base/temp_dir.h"

namespace vmonce {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> Names(const TempDir& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

mode_t ModeOf(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(ErrnoError, TellsNothingHappenedFromNotThere) {
  EXPECT_EQ(ErrnoError(ENOENT, "open x").code, ErrorCode::kNotFound);
  EXPECT_EQ(ErrnoError(EEXIST, "x").code, ErrorCode::kConflict);
  EXPECT_EQ(ErrnoError(ENOSPC, "x").code, ErrorCode::kUnavailable);
  EXPECT_EQ(ErrnoError(EDQUOT, "x").code, ErrorCode::kUnavailable);
  EXPECT_EQ(ErrnoError(EACCES, "x").code, ErrorCode::kRefused);
  EXPECT_EQ(ErrnoError(EISDIR, "x").code, ErrorCode::kInvalid);
  EXPECT_EQ(ErrnoError(EIO, "x").code, ErrorCode::kInternal);
  EXPECT_EQ(ErrnoError(ENOENT, "open x").detail, "open x: No such file or directory");
}

TEST(ReadWholeFile, ReadsEveryByteUpToItsBound) {
  const TempDir dir;
  std::string data(40000, 'x');
  data[7] = '\0';
  ASSERT_TRUE(WriteFileAtomically(dir.File("f"), data, 0600));
  EXPECT_EQ(ReadWholeFile(dir.File("f"), data.size()), data);
  const auto too_long = ReadWholeFile(dir.File("f"), data.size() - 1);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kInvalid);
}

TEST(ReadWholeFile, ReadsFilesThatReportNoSize) {
  const auto status = ReadWholeFile("/proc/self/status", 100000);
  ASSERT_TRUE(status);
  EXPECT_THAT(*status, HasSubstr("Pid:"));
}

TEST(ReadWholeFile, TellsAbsenceFromOtherKindsOfThing) {
  const TempDir dir;
  EXPECT_EQ(ReadWholeFile(dir.File("none"), 10).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadWholeFile(dir.path(), 10).error().code, ErrorCode::kInvalid);
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadWholeFile(dir.File("pipe"), 10).error().code, ErrorCode::kInvalid);
}

TEST(WriteFileAtomically, MakesAndReplacesWithTheExactMode) {
  const TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("f"), "one", 0600));
  EXPECT_EQ(ModeOf(dir.File("f")), 0600u);
  ASSERT_TRUE(WriteFileAtomically(dir.File("f"), "", 0666));
  EXPECT_EQ(ReadWholeFile(dir.File("f"), 10), "");
  EXPECT_EQ(ModeOf(dir.File("f")), 0666u);
  EXPECT_EQ(Names(dir), std::vector<std::string>{"f"});
}

TEST(WriteFileAtomically, WritesANameInTheCurrentDirectory) {
  const TempDir dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  const Status written = WriteFileAtomically("plain", "x", 0600);
  fs::current_path(before);
  EXPECT_TRUE(written);
  EXPECT_EQ(ReadWholeFile(dir.File("plain"), 10), "x");
}

TEST(WriteFileAtomically, ReplacesALinkAndNotItsTarget) {
  const TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("target"), "old", 0600));
  fs::create_symlink(dir.File("target"), dir.File("link"));
  ASSERT_TRUE(WriteFileAtomically(dir.File("link"), "new", 0600));
  EXPECT_EQ(ReadWholeFile(dir.File("target"), 10), "old");
  EXPECT_EQ(ReadWholeFile(dir.File("link"), 10), "new");
}

TEST(WriteFileAtomically, LeavesNothingBehindWhenItFails) {
  const TempDir dir;
  fs::create_directories(dir.File("d/inner"));
  EXPECT_FALSE(WriteFileAtomically(dir.File("d"), "x", 0600));
  EXPECT_EQ(Names(dir), std::vector<std::string>{"d"});
  EXPECT_EQ(WriteFileAtomically(dir.File("none/f"), "x", 0600).error().code, ErrorCode::kNotFound);
}

TEST(WriteFileAtomically, NeverShowsAReaderAMixture) {
  const TempDir dir;
  const std::string path = dir.File("f");
  const std::string a(100000, 'a');
  const std::string b(50000, 'b');
  ASSERT_TRUE(WriteFileAtomically(path, a, 0600));
  const auto threads = NewSystemThreads();
  const auto writer = threads->Spawn("writer", [&](std::stop_token stop) {
    for (bool first = false; !stop.stop_requested(); first = !first) {
      if (!WriteFileAtomically(path, first ? a : b, 0600)) ADD_FAILURE() << "write failed";
    }
  });
  int changes = 0;
  std::string last;
  for (int i = 0; i < 200000 && changes < 20; ++i) {
    const auto seen = ReadWholeFile(path, 200000);
    ASSERT_TRUE(seen) << seen.error().detail;
    ASSERT_TRUE(*seen == a || *seen == b) << seen->size();
    if (*seen != last) ++changes;
    last = *seen;
  }
  EXPECT_EQ(changes, 20);
}

TEST(CreateFileAtomically, RefusesWhatIsThereAndLeavesItAlone) {
  const TempDir dir;
  ASSERT_TRUE(CreateFileAtomically(dir.File("f"), "one", 0640));
  EXPECT_EQ(ModeOf(dir.File("f")), 0640u);
  EXPECT_EQ(CreateFileAtomically(dir.File("f"), "two", 0640).error().code, ErrorCode::kConflict);
  EXPECT_EQ(ReadWholeFile(dir.File("f"), 10), "one");
  fs::create_symlink(dir.File("nowhere"), dir.File("dangling"));
  EXPECT_EQ(CreateFileAtomically(dir.File("dangling"), "x", 0600).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(Names(dir), (std::vector<std::string>{"dangling", "f"}));
}

TEST(CreateFileAtomically, LetsOneOfManyCallersWin) {
  const TempDir dir;
  std::atomic<int> winners = 0;
  {
    const auto threads = NewSystemThreads();
    std::vector<std::unique_ptr<Thread>> callers;
    for (int i = 0; i < 8; ++i) {
      callers.push_back(threads->Spawn("caller", [&, i](std::stop_token) {
        const auto made = CreateFileAtomically(dir.File("f"), std::to_string(i), 0600);
        if (made)
          ++winners;
        else
          EXPECT_EQ(made.error().code, ErrorCode::kConflict);
      }));
    }
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(Names(dir), std::vector<std::string>{"f"});
}

}  // namespace
}  // namespace vmonce
