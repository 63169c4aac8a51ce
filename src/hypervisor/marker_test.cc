#include "hypervisor/marker.h"

#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "hypervisor/embedded_root.h"

namespace vmonce::hypervisor {
namespace {

model::HostMarker Ours() { return {.ledger = {"0123456789ab"}, .host = {"rack-1.example"}}; }

TEST(Marker, ReadsBackBothForms) {
  EXPECT_EQ(ParseMarker(WriteMarker(Ours())), Ours());
  EXPECT_EQ(ParseMarkerVolumeName(MarkerVolumeName(Ours())), Ours());
}

TEST(Marker, TakesGarbageForAnothersMarker) {
  for (const char* text : {"", "{}", "[]", "{\"ledger\":1,\"host\":\"x\"}", "{\"ledger\":\"x\"}"}) {
    auto parsed = ParseMarker(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kConflict);
  }
}

TEST(Marker, IgnoresVolumesThatAreNone) {
  for (const char* name : {"", "vmonce-marker", "vmonce-marker.", "vmonce-marker.a",
                           "vmonce-marker.a.", "vmonce-marker..b", "x.vmonce-marker.a.b"}) {
    EXPECT_FALSE(ParseMarkerVolumeName(name)) << name;
  }
}

TEST(Marker, IsWrittenOnlyWhereNoneIsAndOnlyWhenAllowed) {
  EXPECT_EQ(JudgeMarkers({}, Ours(), true), true);
  EXPECT_EQ(JudgeMarkers({}, Ours(), false).error().code, ErrorCode::kConflict);
  EXPECT_EQ(JudgeMarkers({Ours()}, Ours(), true), false);
  EXPECT_EQ(JudgeMarkers({Ours()}, Ours(), false), false);
}

TEST(Marker, OfAnotherLedgerOrHostOrBesideOursIsAConflict) {
  auto other_host = Ours();
  other_host.host = {"rack-2"};
  auto other_ledger = Ours();
  other_ledger.ledger = {"ba9876543210"};
  for (const auto& found :
       {std::vector{other_host}, std::vector{other_ledger}, std::vector{Ours(), other_ledger}}) {
    EXPECT_EQ(JudgeMarkers(found, Ours(), true).error().code, ErrorCode::kConflict);
  }
}

TEST(EmbeddedRoot, RequiresTheMarkerItOnceWrote) {
  const TempDir directory;
  auto root = EmbeddedRoot::Open(directory.path());
  ASSERT_TRUE(root) << root.error().detail;
  using Policy = ports::MarkerPolicy;
  EXPECT_EQ((*root)->CheckMarker(Ours(), Policy::kRequire).error().code, ErrorCode::kConflict);
  EXPECT_EQ((*root)->CheckMarker(Ours(), Policy::kWriteIfNone), true);
  EXPECT_EQ((*root)->CheckMarker(Ours(), Policy::kWriteIfNone), false);
  EXPECT_EQ((*root)->CheckMarker(Ours(), Policy::kRequire), false);
}

TEST(EmbeddedRoot, IsOnesAtATimeAndNamesWhoHasIt) {
  const TempDir directory;
  auto first = EmbeddedRoot::Open(directory.path());
  ASSERT_TRUE(first);
  auto second = EmbeddedRoot::Open(directory.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(second.error().detail.find(std::to_string(getpid())), std::string::npos);
  first->reset();
  EXPECT_TRUE(EmbeddedRoot::Open(directory.path()));
}

}  // namespace
}  // namespace vmonce::hypervisor
