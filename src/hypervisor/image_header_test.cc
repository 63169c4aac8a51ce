#include "hypervisor/image_header.h"

#include <gtest/gtest.h>

#include <string>

namespace vmonce::hypervisor {
namespace {

using std::string_view_literals::operator""sv;

std::string At(std::size_t offset, std::string_view bytes) {
  return std::string(offset, '\0') + std::string(bytes) + std::string(600, '\0');
}

TEST(ImageHeader, KnowsWhatMayBeUsed) {
  EXPECT_EQ(KindOfFile("QFI\xfb\0\0\0\3"sv), FileKind::kQcow2);
  EXPECT_EQ(KindOfFile(At(0x202, "HdrS")), FileKind::kKernel);
  EXPECT_EQ(KindOfFile("\x7f"
                       "ELF"),
            FileKind::kKernel);
  EXPECT_EQ(KindOfFile(At(510, "\x55\xaa")), FileKind::kOther);
  EXPECT_EQ(KindOfFile(""), FileKind::kOther);
}

TEST(ImageHeader, SaysWhatToDoWithFormatsThatAreNotUsed) {
  const auto vmdk = KindOfFile("KDMV\1\0"sv);
  ASSERT_FALSE(vmdk);
  EXPECT_EQ(vmdk.error().code, ErrorCode::kInvalid);
  EXPECT_NE(vmdk.error().detail.find("qemu-img convert"), std::string::npos);
  for (const std::string& header :
       {std::string("# Disk DescriptorFile\nCID=1"), At(64, "\x7f\x10\xda\xbe"),
        std::string("\xfd\x37zXZ\0", 6), std::string("\x1f\x8b\x08"), At(257, "ustar"),
        std::string("<!DOCTYPE html>")}) {
    EXPECT_FALSE(KindOfFile(header)) << header;
  }
}

TEST(ImageHeader, FindsABootSector) {
  EXPECT_TRUE(HasBootSector(At(510, "\x55\xaa")));
  EXPECT_FALSE(HasBootSector(At(509, "\x55\xaa")));
  EXPECT_FALSE(HasBootSector(""));
}

}  // namespace
}  // namespace vmonce::hypervisor
