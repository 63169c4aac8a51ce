// Every seed through its target: what a fuzzer once found stays mended, and the targets stay built
// with every compiler.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSeedBytes = 1 << 20;

TEST(FuzzSeeds, PassThroughTheirTargets) {
  const fs::path seeds = fs::path(VMONCE_SOURCE_DIR) / "tests/fuzz/seeds";
  for (const Target& target : AllTargets()) {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(seeds / target.name)) {
      const auto input = ReadWholeFile(entry.path().string(), kSeedBytes);
      ASSERT_TRUE(input.has_value()) << entry.path();
      SCOPED_TRACE(entry.path().string());
      target.run(*input);
      ++count;
    }
    EXPECT_GT(count, 0) << target.name;
  }
}

TEST(FuzzSeeds, PassThroughTheOtherTargetsToo) {
  const fs::path seeds = fs::path(VMONCE_SOURCE_DIR) / "tests/fuzz/seeds";
  for (const auto& entry : fs::recursive_directory_iterator(seeds)) {
    if (!entry.is_regular_file()) continue;
    const auto input = ReadWholeFile(entry.path().string(), kSeedBytes);
    ASSERT_TRUE(input.has_value()) << entry.path();
    SCOPED_TRACE(entry.path().string());
    for (const Target& target : AllTargets()) target.run(*input);
  }
}

TEST(FuzzSeeds, TargetsTakeNothingAtAll) {
  for (const Target& target : AllTargets()) target.run("");
}

}  // namespace
}  // namespace vmonce::fuzz
