// One suite for every adapter of ports/hypervisor.h: a simulated host, libvirt's test driver, and a
// real QEMU in an embedded libvirt. What a kind of host cannot do at all is not in its list of
// suites.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "hypervisor/driver_contract_suite.h"

namespace vmonce::hypervisor {
namespace {

using model::Observed;
using model::VmId;

using EveryBed = testing::Types<SimulatedBed, TestDriverBed, EmbeddedBed, DaemonBed, RemoteBed>;

class BedNames {
 public:
  template <typename BedType>
  static std::string GetName(int) {
    if (std::is_same_v<BedType, SimulatedBed>) return "Simulated";
    if (std::is_same_v<BedType, TestDriverBed>) return "LibvirtTest";
    if (std::is_same_v<BedType, DaemonBed>) return "LocalDaemon";
    if (std::is_same_v<BedType, RemoteBed>) return "RemoteDaemon";
    return "EmbeddedQemu";
  }
};

TYPED_TEST_SUITE(DriverContract, EveryBed, BedNames);

TYPED_TEST(DriverContract, LooksForWhatIsNotThereAndSaysSo) {
  const VmId vm = this->NewVm();
  EXPECT_FALSE(this->Look(vm));
  EXPECT_EQ(this->TimesListed(vm), 0);
  EXPECT_EQ(this->driver_->StampFence(vm, this->Guard(1)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(this->driver_->Start(vm, this->Guard(1)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(this->driver_->Shutdown(vm, this->Guard(1)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(this->driver_->Reboot(vm, this->Guard(1)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(this->driver_->ReadConsole(vm, 0, 10).error().code, ErrorCode::kNotFound);
}

// report 107: what an earlier attempt left is adopted, not in the way.
TYPED_TEST(DriverContract, DefinesOneDomainHoweverOften) {
  const VmId vm = this->NewVm();
  this->Make(vm, 3);
  this->Make(vm, 4);
  const auto seen = this->Look(vm);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->name, model::DomainName(TestMarker().ledger, vm));
  EXPECT_EQ(seen->power, Observed::kStopped);
  EXPECT_EQ(seen->stopped_by, model::StopCause::kHost) << "nothing is known of a stop";
  auto label = this->LabelOf(TestMarker().ledger);
  label.fence = {4};
  EXPECT_EQ(seen->label, label);
  EXPECT_EQ(this->TimesListed(vm), 1);
}

TYPED_TEST(DriverContract, RunsEveryEffectTwiceAndEndsInTheSamePlace) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  for (int again = 0; again < 2; ++again) {
    this->Start(vm, 1);
    EXPECT_EQ(this->Look(vm)->power, Observed::kRunning);
    EXPECT_EQ(this->Look(vm)->stopped_by, model::StopCause::kNone);
  }
  EXPECT_EQ(this->TimesListed(vm), 1);
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(this->driver_->Destroy(vm, this->Guard(1)));
    EXPECT_EQ(this->Look(vm)->power, Observed::kStopped);
    EXPECT_EQ(this->Look(vm)->stopped_by, model::StopCause::kPerson);
  }
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(this->driver_->Undefine(vm, this->Guard(1)));
    EXPECT_FALSE(this->Look(vm));
  }
  EXPECT_TRUE(this->driver_->Destroy(vm, this->Guard(1)));
}

// report 109
TYPED_TEST(DriverContract, MakesAndDeletesDiskAndSeedHoweverOften) {
  const VmId vm = this->NewVm();
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(this->driver_->CreateDisk(this->Disk(vm), this->Guard(1)));
    EXPECT_TRUE(this->driver_->CreateSeed(this->Seed(vm), this->Guard(1)));
  }
  std::vector<std::string> names{model::DiskName(TestMarker().ledger, vm),
                                 model::SeedName(TestMarker().ledger, vm)};
  std::ranges::sort(names);
  EXPECT_EQ(this->VolumesOf(vm), names);
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(this->driver_->DeleteDisk(vm, this->Guard(1)));
    EXPECT_TRUE(this->driver_->DeleteSeed(vm, this->Guard(1)));
  }
  EXPECT_TRUE(this->VolumesOf(vm).empty());
}

// report 115
TYPED_TEST(DriverContract, NeverTouchesAStrangerThatHasOurUuid) {
  const VmId vm = this->NewVm();
  this->bed_->Plant(vm, "a-strangers-machine", std::nullopt);
  const auto seen = this->Look(vm);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->label, std::nullopt);
  this->ExpectEveryEffect(vm, this->Guard(this->kLast), ErrorCode::kConflict);
  EXPECT_TRUE(this->bed_->IsThere(vm, "a-strangers-machine"));
  EXPECT_EQ(this->Look(vm)->power, Observed::kStopped);
  EXPECT_TRUE(this->VolumesOf(vm).empty());
}

// report 115
TYPED_TEST(DriverContract, TakesAnotherLedgersLabelForAStrangers) {
  const VmId vm = this->NewVm();
  this->bed_->Plant(vm, "another-ledgers-machine", this->LabelOf({"ba9876543210"}));
  EXPECT_EQ(this->Look(vm)->label, std::nullopt);
  this->ExpectEveryEffect(vm, this->Guard(this->kLast), ErrorCode::kConflict);
  EXPECT_TRUE(this->bed_->IsThere(vm, "another-ledgers-machine"));
}

// reports 118 and 121: a stranger that has our very name.
TYPED_TEST(DriverContract, NeverTouchesAStrangerThatHasOurName) {
  const VmId vm = this->NewVm();
  const VmId stranger = this->NewVm();
  const std::string name = model::DomainName(TestMarker().ledger, vm);
  this->bed_->Plant(stranger, name, std::nullopt);
  const Status defined = this->driver_->Define(this->Domain(vm), this->Guard(1));
  ASSERT_FALSE(defined);
  EXPECT_EQ(defined.error().code, ErrorCode::kConflict) << defined.error().detail;
  EXPECT_TRUE(this->bed_->IsThere(stranger, name));
  EXPECT_FALSE(this->Look(vm));
}

// reports 31 and 100: a stale worker wakes up.
TYPED_TEST(DriverContract, RefusesALowerFenceBesideEveryEffect) {
  const VmId vm = this->NewVm();
  this->Make(vm, 5);
  this->ExpectEveryEffect(vm, this->Guard(4), ErrorCode::kFenced);
  const auto seen = this->Look(vm);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->label->fence.value, 5);
  EXPECT_EQ(seen->power, Observed::kStopped);
  EXPECT_EQ(this->VolumesOf(vm).size(), 2u);
}

TYPED_TEST(DriverContract, DoesNothingOnceTheDeadlineHasPassed) {
  const VmId made = this->NewVm();
  this->Make(made, 1);
  this->ExpectEveryEffect(made, this->TooLate(), ErrorCode::kFenced);
  EXPECT_EQ(this->Look(made)->label->fence.value, 1);
  EXPECT_EQ(this->Look(made)->power, Observed::kStopped);
  EXPECT_EQ(this->VolumesOf(made).size(), 2u);

  const VmId absent = this->NewVm();
  this->ExpectEveryEffect(absent, this->TooLate(), ErrorCode::kFenced);
  EXPECT_FALSE(this->Look(absent));
  EXPECT_TRUE(this->VolumesOf(absent).empty());
}

TYPED_TEST(DriverContract, StampsAHigherFenceIntoStoppedAndRunningDomains) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  EXPECT_TRUE(this->driver_->StampFence(vm, this->Guard(2)));
  EXPECT_EQ(this->Look(vm)->label->fence.value, 2);
  this->Start(vm, 2);
  EXPECT_TRUE(this->driver_->StampFence(vm, this->Guard(3)));
  EXPECT_EQ(this->Look(vm)->label->fence.value, 3);
  EXPECT_EQ(this->driver_->Destroy(vm, this->Guard(2)).error().code, ErrorCode::kFenced);
  EXPECT_TRUE(this->driver_->Destroy(vm, this->Guard(3)));
  // The definition knows it, too.
  EXPECT_EQ(this->Look(vm)->label->fence.value, 3);
}

TYPED_TEST(DriverContract, LeavesARunningDomainRunningWhenItIsDefinedAgain) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  this->Start(vm, 1);
  const Status again = this->driver_->Define(this->Domain(vm), this->Guard(2));
  EXPECT_TRUE(again) << again.error().detail;
  EXPECT_EQ(this->Look(vm)->power, Observed::kRunning);
  EXPECT_EQ(this->Look(vm)->label->fence.value, 2);
}

TYPED_TEST(DriverContract, RefusesToTakeAwayWhatARunningDomainNeeds) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  this->Start(vm, 1);
  EXPECT_EQ(this->driver_->Undefine(vm, this->Guard(1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->driver_->DeleteDisk(vm, this->Guard(1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->driver_->DeleteSeed(vm, this->Guard(1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->Look(vm)->power, Observed::kRunning);
  EXPECT_EQ(this->VolumesOf(vm).size(), 2u);
}

TYPED_TEST(DriverContract, AsksOnlyRunningGuestsToShutDownOrReboot) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  EXPECT_EQ(this->driver_->Shutdown(vm, this->Guard(1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->driver_->Reboot(vm, this->Guard(1)).error().code, ErrorCode::kConflict);
  this->Start(vm, 1);
  const Status reset = this->driver_->Reboot(vm, this->Guard(1));
  EXPECT_TRUE(reset) << reset.error().detail;
  EXPECT_EQ(this->Look(vm)->power, Observed::kRunning);
  const Status asked = this->driver_->Shutdown(vm, this->Guard(1));
  EXPECT_TRUE(asked) << asked.error().detail;
}

TYPED_TEST(DriverContract, BelievesNothingOnAHostWithAnotherMarker) {
  this->Restart();
  model::HostMarker other = TestMarker();
  other.host = {"two"};
  for (const auto policy : {ports::MarkerPolicy::kRequire, ports::MarkerPolicy::kWriteIfNone}) {
    auto facts = this->driver_->Connect(other, policy);
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code, ErrorCode::kConflict) << facts.error().detail;
  }
  auto listed = this->driver_->List();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kUnavailable);
  this->Open();
}

TYPED_TEST(DriverContract, IsUnavailableBeforeItWasConnected) {
  this->Restart();
  const VmId vm = this->NewVm();
  EXPECT_EQ(this->driver_->Look(vm).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(this->driver_->Start(vm, this->Guard(1)).error().code, ErrorCode::kUnavailable);
  this->Open();
}

TYPED_TEST(DriverContract, TellsWhatAMachineIsMadeOf) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  const auto seen = this->Look(vm);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->facts.cpus, 1);
  EXPECT_EQ(seen->facts.memory_mib, 128);
  EXPECT_EQ(seen->facts.mac, model::MacAddress(vm));
  EXPECT_EQ(seen->facts.network, "user");
}

TYPED_TEST(DriverContract, TellsItsMarkerBeforeAnythingIsProven) {
  this->Restart();
  const auto marker = this->driver_->ReadMarker();
  ASSERT_TRUE(marker) << marker.error().detail;
  EXPECT_EQ(*marker, TestMarker());
  EXPECT_EQ(this->driver_->List().error().code, ErrorCode::kUnavailable);
  this->Open();
}

TYPED_TEST(DriverContract, FindsItsMachinesWhenTheServiceStartsAgain) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  this->Start(vm, 1);
  this->Open();
  auto facts = this->driver_->Connect(TestMarker(), ports::MarkerPolicy::kRequire);
  ASSERT_TRUE(facts) << facts.error().detail;
  EXPECT_FALSE(facts->wrote_marker);
  const auto seen = this->Look(vm);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->power, Observed::kRunning);
  EXPECT_TRUE(seen->label);
  EXPECT_EQ(this->VolumesOf(vm).size(), 2u);
}

// Hosts that look at image files.
template <typename BedType>
class ImageContract : public DriverContract<BedType> {};
using ImageBeds = testing::Types<TestDriverBed, EmbeddedBed, DaemonBed, RemoteBed>;
TYPED_TEST_SUITE(ImageContract, ImageBeds, BedNames);

TYPED_TEST(ImageContract, TellsAnImageThatIsNotThereFromOneThatIsRefused) {
  const VmId vm = this->NewVm();
  auto order = this->Disk(vm);
  order.base_path = "/nowhere/image.qcow2";
  const Status made = this->driver_->CreateDisk(order, this->Guard(1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound) << made.error().detail;
  EXPECT_TRUE(this->VolumesOf(vm).empty());
}

TYPED_TEST(ImageContract, RefusesADiskSmallerThanNothing) {
  const VmId vm = this->NewVm();
  auto order = this->Disk(vm);
  order.base_path.clear();
  const Status made = this->driver_->CreateDisk(order, this->Guard(1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kRefused) << made.error().detail;
}

// Real guests.
template <typename BedType>
class BootContract : public DriverContract<BedType> {
 protected:
  // Reads the console until it holds `text`.
  std::string WaitForConsole(const VmId& vm, const std::string& text) {
    std::string console;
    std::int64_t offset = 0;
    const auto until = this->bed_->clock().Monotonic() + std::chrono::seconds(90);
    while (this->bed_->clock().Monotonic() < until && console.find(text) == std::string::npos) {
      auto chunk = this->driver_->ReadConsole(vm, offset, 4096);
      if (chunk) {
        console += chunk->data;
        offset = chunk->next_offset;
      }
      this->bed_->Pause();
    }
    return console;
  }

  bool WaitForStop(const VmId& vm) {
    const auto until = this->bed_->clock().Monotonic() + std::chrono::seconds(60);
    while (this->bed_->clock().Monotonic() < until) {
      const auto seen = this->Look(vm);
      if (seen && seen->power == Observed::kStopped) return true;
      this->bed_->Pause();
    }
    return false;
  }
};
using BootBeds = testing::Types<EmbeddedBed, DaemonBed, RemoteBed>;
TYPED_TEST_SUITE(BootContract, BootBeds, BedNames);

TYPED_TEST(BootContract, BootsAGuestThatReadsItsSeedAndShutsDownWhenAsked) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  this->Start(vm, 1);
  const std::string console = this->WaitForConsole(vm, "vmonce-guest: ready");
  EXPECT_NE(console.find("vmonce-guest: ready"), std::string::npos) << console;
  EXPECT_NE(console.find("hostname=guest-one"), std::string::npos) << console;
  EXPECT_NE(console.find("user-data: # marked user data"), std::string::npos) << console;

  auto tail = this->driver_->ReadConsole(vm, -8, 4);
  ASSERT_TRUE(tail) << tail.error().detail;
  EXPECT_EQ(tail->data.size(), 4u);
  EXPECT_TRUE(this->driver_->Shutdown(vm, this->Guard(1)));
  EXPECT_TRUE(this->WaitForStop(vm));
  EXPECT_EQ(this->Look(vm)->stopped_by, model::StopCause::kGuest);
  EXPECT_TRUE(this->driver_->Undefine(vm, this->Guard(1)));
  EXPECT_EQ(this->driver_->ReadConsole(vm, 0, 10).error().code, ErrorCode::kNotFound);
}

class GuestContract : public DriverContract<EmbeddedBed> {};

TEST_F(GuestContract, LeavesNoClearUserDataButInTheSeed) {
  const VmId vm = NewVm();
  ASSERT_TRUE(driver_->CreateSeed(Seed(vm), Guard(1)));
  EXPECT_TRUE(std::filesystem::is_empty(bed_->root() + "/scratch"));
  struct stat seed{};
  const std::string path = bed_->root() + "/disks/" + model::SeedName(TestMarker().ledger, vm);
  ASSERT_EQ(stat(path.c_str(), &seed), 0);
  EXPECT_EQ(seed.st_mode & 0777, 0600u);
}

// A QEMU that dies at its start comes as a generic code; that it does not run is found by looking.
TEST_F(GuestContract, CallsAFailedStartUnavailableOnceALookHasProvenIt) {
  const VmId vm = NewVm();
  Make(vm, 1);
  ASSERT_TRUE(driver_->DeleteDisk(vm, Guard(1)));
  const Status started = driver_->Start(vm, Guard(1));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kUnavailable) << started.error().detail;
  EXPECT_EQ(Look(vm)->power, Observed::kStopped);
  // report 107: and once the cause is gone, the same domain starts.
  ASSERT_TRUE(driver_->CreateDisk(Disk(vm), Guard(1)));
  Start(vm, 1);
  EXPECT_EQ(TimesListed(vm), 1);
}

TEST_F(GuestContract, TellsAKernelThatIsNotThere) {
  const VmId vm = NewVm();
  auto order = Domain(vm);
  order.spec.image.kernel_path = "/nowhere/vmlinuz";
  const Status defined = driver_->Define(order, Guard(1));
  ASSERT_FALSE(defined);
  EXPECT_EQ(defined.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(Look(vm));
}

// A base that names another file would let whoever made it read any file of the host.
TEST_F(GuestContract, RefusesABaseThatNamesABackingFile) {
  const std::string chained = bed_->root() + "/chained.qcow2";
  bed_->Run(
      {"qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", "/etc/hostname", chained});
  const VmId vm = NewVm();
  auto order = Disk(vm);
  order.base_path = chained;
  const Status made = driver_->CreateDisk(order, Guard(1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kRefused) << made.error().detail;
}

// Left by a process that died while it started a machine, and unknown to the libvirt opened next.
TEST_F(GuestContract, DoesNotCallAMachineAbsentWhileItsQemuRuns) {
  const VmId vm = NewVm();
  const std::string name = model::DomainName(TestMarker().ledger, vm);
  {
    const auto process = bed_->RunMeanwhile(
        {"sh", "-c", "kill -STOP $$", "sh", "guest=" + name + ",debug-threads=on"});
    auto seen = driver_->Look(vm);
    const auto until = bed_->clock().Monotonic() + std::chrono::seconds(10);
    while (seen && bed_->clock().Monotonic() < until) seen = driver_->Look(vm);
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_FALSE(Look(vm));
}

}  // namespace
}  // namespace vmonce::hypervisor
