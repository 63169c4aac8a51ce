#include "hypervisor/base_image.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/process.h"
#include "base/temp_dir.h"

namespace vmonce::hypervisor {
namespace {

TEST(BaseImage, TakesALoneImageAndItsSize) {
  EXPECT_EQ(JudgeBaseImage("x", R"({"virtual-size": 67108864, "format": "qcow2",
      "format-specific": {"type": "qcow2", "data": {"compat": "1.1"}}})"),
            67108864);
}

TEST(BaseImage, RefusesOneThatNamesAnotherFile) {
  for (const char* info :
       {R"({"virtual-size": 1024, "backing-filename": "/etc/shadow"})",
        R"({"virtual-size": 1024, "format-specific": {"data": {"data-file": "/dev/sda"}}})"}) {
    EXPECT_EQ(JudgeBaseImage("x", info).error().code, ErrorCode::kRefused) << info;
  }
}

TEST(BaseImage, SaysNothingForCertainOfWhatItCannotRead) {
  EXPECT_EQ(JudgeBaseImage("x", "").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(JudgeBaseImage("x", R"({"virtual-size": 0})").error().code, ErrorCode::kRefused);
}

TEST(BaseImage, AsksTheRealTool) {
  const TempDir directory;
  const std::string image = directory.File("image.qcow2");
  auto made = RunProcess({.argv = {"qemu-img", "create", "-q", "-f", "qcow2", image, "8M"},
                          .timeout = Milliseconds(30'000)});
  ASSERT_TRUE(made && made->Succeeded());
  EXPECT_EQ(InspectBaseImage(image, "qcow2"), 8 << 20);
  // A raw file that is no qcow2 does not become one by its name.
  ASSERT_TRUE(WriteFileAtomically(directory.File("raw.qcow2"), std::string(1024, 'x'), 0600));
  EXPECT_EQ(InspectBaseImage(directory.File("raw.qcow2"), "qcow2").error().code,
            ErrorCode::kRefused);
  EXPECT_EQ(InspectBaseImage(directory.File("raw.qcow2"), "raw"), 1024);
}

TEST(BaseImage, RefusesWhatIsNotThereOrNoFile) {
  const TempDir directory;
  EXPECT_EQ(InspectBaseImage(directory.File("none"), "raw").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(InspectBaseImage(directory.path(), "raw").error().code, ErrorCode::kRefused);
  EXPECT_EQ(InspectBaseImage("relative", "raw").error().code, ErrorCode::kRefused);
  EXPECT_EQ(InspectBaseImage(directory.File("none"), "vmdk").error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace vmonce::hypervisor
