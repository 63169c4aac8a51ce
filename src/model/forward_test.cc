#include "model/forward.h"

#include <gtest/gtest.h>

#include <set>

namespace vmonce::model {
namespace {

const VmId kForwardedVm{*ParseUuid("01890a5d-ac96-774b-bcce-b302099a8057")};

TEST(PortRange, ReadsFirstAndLastAndNothingElse) {
  EXPECT_EQ(ParsePortRange("20000-29999"), (PortRange{20'000, 29'999}));
  EXPECT_EQ(ParsePortRange("1024-1024")->Size(), 1);
  for (const char* text : {"", "20000", "-", "20000-", "-20000", "2-1", "30000-20000", "1023-2000",
                           "20000-65536", "20000 - 20001", "20000-2000x", "+20000-20001"}) {
    EXPECT_FALSE(ParsePortRange(text)) << text;
  }
}

TEST(PortAt, VisitsEveryPortOfTheRangeOnce) {
  const PortRange range{20'000, 20'006};
  std::set<int> ports;
  for (int turn = 0; turn < range.Size(); ++turn) ports.insert(PortAt(range, kForwardedVm, turn));
  EXPECT_EQ(ports.size(), 7u);
  EXPECT_EQ(*ports.begin(), 20'000);
  EXPECT_EQ(*ports.rbegin(), 20'006);
}

TEST(PortAt, BeginsAtDifferentPlacesForDifferentVms) {
  const PortRange range{20'000, 29'999};
  std::set<int> firsts;
  VmId vm = kForwardedVm;
  for (int i = 0; i < 50; ++i) {
    vm.value.bytes[14] = static_cast<std::uint8_t>(5 * i);
    firsts.insert(PortAt(range, vm, 0));
  }
  EXPECT_GT(firsts.size(), 40u);
}

TEST(Protocol, HasTwoWords) {
  EXPECT_EQ(ParseProtocol(ToString(Protocol::kTcp)), Protocol::kTcp);
  EXPECT_EQ(ParseProtocol(ToString(Protocol::kUdp)), Protocol::kUdp);
  EXPECT_FALSE(ParseProtocol("TCP"));
}

}  // namespace
}  // namespace vmonce::model
