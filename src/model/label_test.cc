#include "model/label.h"

#include <gtest/gtest.h>

#include <cctype>
#include <random>
#include <string>

namespace vmonce::model {
namespace {

const LedgerId kLedger{"0123456789ab"};

VmId IdOf(std::string_view text) { return VmId{ParseUuid(text).value()}; }

const VmId kVm = IdOf("01890a5d-ac96-774b-bcce-b302099a8057");

TEST(Label, NamesContainTheLedgerAndTheMachine) {
  EXPECT_EQ(DomainName(kLedger, kVm), "vmonce-0123456789ab-01890a5d-ac96-774b-bcce-b302099a8057");
  EXPECT_EQ(DiskName(kLedger, kVm),
            "vmonce-0123456789ab-01890a5d-ac96-774b-bcce-b302099a8057.qcow2");
  EXPECT_EQ(SeedName(kLedger, kVm),
            "vmonce-0123456789ab-01890a5d-ac96-774b-bcce-b302099a8057.seed.iso");
}

TEST(Label, NamesAreReadBackExactly) {
  std::mt19937_64 chance(20240601);
  for (int round = 0; round < 200; ++round) {
    VmId vm;
    for (auto& byte : vm.value.bytes) byte = static_cast<std::uint8_t>(chance());
    EXPECT_EQ(VmOfDomainName(kLedger, DomainName(kLedger, vm)), vm);
    EXPECT_EQ(VmOfVolume(kLedger, DiskName(kLedger, vm)), vm);
    EXPECT_EQ(VmOfVolume(kLedger, SeedName(kLedger, vm)), vm);
  }
}

TEST(Label, ImagesAreNamedByWhatTheyHoldAndReadBackExactly) {
  const Digest digest = Sha256("image");
  const std::string name = ImageVolumeName(kLedger, digest);
  EXPECT_EQ(name, "vmonce-0123456789ab-image-" + ToHex(digest));
  EXPECT_EQ(ImageOfVolume(kLedger, name), digest);
  EXPECT_EQ(ImageOfVolume(LedgerId{"0123456789ac"}, name), std::nullopt);
  EXPECT_EQ(ImageOfVolume(kLedger, name + ".whole"), std::nullopt);
  EXPECT_EQ(ImageOfVolume(kLedger, DiskName(kLedger, kVm)), std::nullopt);
  EXPECT_EQ(VmOfVolume(kLedger, name), std::nullopt);
}

TEST(Label, NamesOfOneKindAreNoNamesOfAnother) {
  EXPECT_EQ(VmOfVolume(kLedger, DomainName(kLedger, kVm)), std::nullopt);
  EXPECT_EQ(VmOfDomainName(kLedger, DiskName(kLedger, kVm)), std::nullopt);
  EXPECT_EQ(VmOfDomainName(kLedger, SeedName(kLedger, kVm)), std::nullopt);
}

TEST(Label, NamesOfAnotherLedgerAreStrangers) {
  const LedgerId other{"0123456789ac"};
  EXPECT_EQ(VmOfDomainName(kLedger, DomainName(other, kVm)), std::nullopt);
  EXPECT_EQ(VmOfVolume(kLedger, DiskName(other, kVm)), std::nullopt);
  EXPECT_EQ(VmOfVolume(kLedger, SeedName(other, kVm)), std::nullopt);
}

TEST(Label, AnyChangeOfANameMakesItAStrangers) {
  const std::string disk = DiskName(kLedger, kVm);
  for (std::size_t at = 0; at < disk.size(); ++at) {
    std::string shorter = disk;
    shorter.erase(at, 1);
    EXPECT_EQ(VmOfVolume(kLedger, shorter), std::nullopt) << shorter;
    std::string longer = disk;
    longer.insert(at, 1, '0');
    EXPECT_EQ(VmOfVolume(kLedger, longer), std::nullopt) << longer;
    std::string upper = disk;
    upper[at] = static_cast<char>(std::toupper(upper[at]));
    if (upper != disk) {
      EXPECT_EQ(VmOfVolume(kLedger, upper), std::nullopt) << upper;
    }
  }
  for (const char* suffix : {".tmp", ".tmp-1", "~", " ", "/", "\n", ".qcow2"}) {
    EXPECT_EQ(VmOfVolume(kLedger, disk + suffix), std::nullopt) << suffix;
  }
  for (const char* prefix : {".", "/", "x", "vmonce-"}) {
    EXPECT_EQ(VmOfVolume(kLedger, prefix + disk), std::nullopt) << prefix;
  }
}

TEST(Label, NamesThatAreTooShortAreStrangers) {
  for (const char* name : {"", "vmonce-", ".qcow2", ".seed.iso", "vmonce-0123456789ab",
                           "vmonce-0123456789ab-", "vmonce-0123456789ab-.qcow2"}) {
    EXPECT_EQ(VmOfDomainName(kLedger, name), std::nullopt) << name;
    EXPECT_EQ(VmOfVolume(kLedger, name), std::nullopt) << name;
  }
}

TEST(Label, MacComesFromTheIdsLastBits) {
  EXPECT_EQ(MacAddress(kVm), "52:54:00:9a:80:57");
  EXPECT_EQ(MacAddress(VmId{}), "52:54:00:00:00:00");
}

TEST(Label, MacIsLocalAndUnicast) {
  const int first = std::stoi(MacAddress(kVm).substr(0, 2), nullptr, 16);
  EXPECT_EQ(first & 1, 0) << "the group bit";
  EXPECT_EQ(first & 2, 2) << "the local bit";
}

}  // namespace
}  // namespace vmonce::model
