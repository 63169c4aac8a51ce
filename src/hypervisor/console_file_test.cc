#include "hypervisor/console_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

TEST(ConsoleFile, ReadsOnFromWhereTheLastReadEnded) {
  const TempDir directory;
  const std::string path = directory.File("c.log");
  ASSERT_TRUE(WriteFileAtomically(path, "hello world", 0600));
  auto chunk = ReadConsoleFile(path, 0, 5);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->data, "hello");
  EXPECT_EQ(chunk->next_offset, 5);
  chunk = ReadConsoleFile(path, chunk->next_offset, 100);
  EXPECT_EQ(chunk->data, " world");
  EXPECT_EQ(chunk->next_offset, 11);
  chunk = ReadConsoleFile(path, chunk->next_offset, 100);
  EXPECT_EQ(chunk->data, "");
  EXPECT_EQ(chunk->next_offset, 11);
}

TEST(ConsoleFile, CountsANegativeOffsetFromTheEnd) {
  const TempDir directory;
  const std::string path = directory.File("c.log");
  ASSERT_TRUE(WriteFileAtomically(path, "hello world", 0600));
  EXPECT_EQ(ReadConsoleFile(path, -5, 100)->data, "world");
  EXPECT_EQ(ReadConsoleFile(path, -100, 5)->data, "hello");
  EXPECT_EQ(ReadConsoleFile(path, std::numeric_limits<std::int64_t>::min(), 5)->data, "hello");
  EXPECT_EQ(ReadConsoleFile(path, 1000, 5)->next_offset, 11);
}

TEST(ConsoleFile, IsNotFoundBeforeTheFirstStart) {
  EXPECT_EQ(ReadConsoleFile("/nowhere/c.log", 0, 5).error().code, ErrorCode::kNotFound);
}

TEST(ConsoleFile, DropsTheOldestOutputOfAGuestThatTalksTooMuchAndKeepsOffsets) {
  const TempDir directory;
  const std::string path = directory.File("c.log");
  std::string output(model::limits::kConsoleFileBytes + 100'000, 'x');
  output += "the end";
  ASSERT_TRUE(WriteFileAtomically(path, output, 0600));
  ASSERT_TRUE(TrimConsoleFile(path, model::limits::kConsoleFileBytes));
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  ASSERT_EQ(static_cast<std::size_t>(status.st_size), output.size());
  EXPECT_LT(static_cast<std::size_t>(status.st_blocks) * 512, model::limits::kConsoleFileBytes);
  EXPECT_EQ(ReadConsoleFile(path, -7, 100)->data, "the end");
  // Reading from the start goes on behind what was dropped.
  auto chunk = ReadConsoleFile(path, 0, 10);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->data, std::string(10, 'x'));
  EXPECT_GT(chunk->next_offset, 4096);
}

}  // namespace
}  // namespace vmonce::hypervisor
