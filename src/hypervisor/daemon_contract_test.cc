// What only a libvirt daemon can do: end without its machines, hang, have networks, be elsewhere.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/file.h"
#include "hypervisor/driver_contract_suite.h"
#include "hypervisor/host_uri.h"
#include "hypervisor/libvirt_driver.h"

namespace vmonce::hypervisor {
namespace {

using model::Observed;
using model::VmId;

template <typename BedType>
class DaemonContract : public DriverContract<BedType> {
 protected:
  // Looks until the host answers.
  std::optional<ports::DomainSighting> LookWhenItAnswers(const VmId& vm) {
    const auto until = this->bed_->clock().Monotonic() + std::chrono::seconds(60);
    while (this->bed_->clock().Monotonic() < until) {
      if (auto seen = this->driver_->Look(vm)) return *seen;
      this->bed_->Pause();
    }
    ADD_FAILURE() << "the host does not answer";
    return std::nullopt;
  }
};

struct Names {
  template <typename BedType>
  static std::string GetName(int) {
    return std::is_same_v<BedType, RemoteBed> ? "RemoteDaemon" : "LocalDaemon";
  }
};
using DaemonBeds = testing::Types<DaemonBed, RemoteBed>;
TYPED_TEST_SUITE(DaemonContract, DaemonBeds, Names);

TYPED_TEST(DaemonContract, FindsItsMachinesAfterTheDaemonWasKilledAndStartedAgain) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  this->Start(vm, 1);
  this->bed_->daemon().Kill();
  auto seen = this->driver_->Look(vm);
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, ErrorCode::kUnavailable) << seen.error().detail;
  const Status started = this->driver_->Start(vm, this->Guard(1));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kUnavailable) << started.error().detail;
  this->bed_->daemon().Start();
  const auto again = this->LookWhenItAnswers(vm);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->power, Observed::kRunning);
  EXPECT_EQ(again->label->fence.value, 1);
  EXPECT_TRUE(this->driver_->Destroy(vm, this->Guard(1)));
}

// A daemon that dies in the middle of a call leaves it unknown, never done and never refused.
TYPED_TEST(DaemonContract, CallsAnEffectUnknownWhenTheDaemonHangsAndTellsItsEnd) {
  const VmId vm = this->NewVm();
  this->Make(vm, 1);
  const auto threads = NewSystemThreads();
  const auto logger = NewNullLogger();
  auto uri = ParseHostUri(std::is_same_v<TypeParam, RemoteBed> ? this->bed_->daemon().RemoteUri()
                                                               : this->bed_->daemon().LocalUri());
  ASSERT_TRUE(uri);
  HostThreads impatient(
      std::make_shared<LibvirtDriver>(LibvirtOptions{.uri = *uri,
                                                     .pool = "vmonce",
                                                     .scratch = this->bed_->daemon().dir().path(),
                                                     .events = TestEvents()},
                                      this->bed_->clock(), *threads, *logger),
      {.host = "one", .effect_deadline = Milliseconds(700), .look_deadline = Milliseconds(700)},
      this->bed_->clock(), *threads, *logger);
  ASSERT_TRUE(impatient.Connect(TestMarker(), ports::MarkerPolicy::kRequire));
  this->bed_->daemon().Freeze();
  const Status started = impatient.Start(vm, this->Guard(1));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kUnknown) << started.error().detail;
  EXPECT_EQ(impatient.CallsOut(vm), 1);
  auto seen = impatient.Look(vm);
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, ErrorCode::kUnavailable);
  this->bed_->daemon().Thaw();
  const auto until = this->bed_->clock().Monotonic() + std::chrono::seconds(60);
  while (impatient.AnyOut() && this->bed_->clock().Monotonic() < until) this->bed_->Pause();
  EXPECT_EQ(impatient.CallsOut(vm), 0);
  // The call went through after all: that is what unknown means.
  EXPECT_EQ(this->LookWhenItAnswers(vm)->power, Observed::kRunning);
}

class NetworkContract : public DaemonContract<DaemonBed> {
 protected:
  static constexpr const char* kName = "lan";

  // Without forwarding: no firewall rule of this machine is touched.
  void MakeNetwork() {
    network_.reset(virNetworkCreateXML(
        bed_->connection(),
        "<network><name>lan</name><forward mode='open'/><bridge name='vmoncetest0' stp='off' "
        "delay='0'/><ip address='192.168.219.1' netmask='255.255.255.0'><dhcp>"
        "<range start='192.168.219.10' end='192.168.219.99'/></dhcp></ip></network>"));
    ASSERT_NE(network_, nullptr) << LastFault().message;
  }
  ~NetworkContract() override {
    if (network_ != nullptr) virNetworkDestroy(network_.get());
  }

  NetworkHandle network_;
};

TEST_F(NetworkContract, ShowsTheLeasedAddressOfAGuestInANamedNetwork) {
  MakeNetwork();
  const VmId vm = NewVm();
  ASSERT_TRUE(driver_->CreateDisk(Disk(vm), Guard(1)));
  ASSERT_TRUE(driver_->CreateSeed(Seed(vm), Guard(1)));
  auto order = Domain(vm);
  order.spec.network = kName;
  const Status defined = driver_->Define(order, Guard(1));
  ASSERT_TRUE(defined) << defined.error().detail;
  EXPECT_TRUE(Look(vm)->addresses.empty());
  Start(vm, 1);
  std::vector<std::string> addresses;
  const auto until = bed_->clock().Monotonic() + std::chrono::seconds(90);
  while (addresses.empty() && bed_->clock().Monotonic() < until) {
    addresses = Look(vm)->addresses;
    bed_->Pause();
  }
  EXPECT_THAT(addresses, testing::ElementsAre(testing::StartsWith("192.168.219.")));
  EXPECT_TRUE(driver_->Destroy(vm, Guard(1)));
  EXPECT_TRUE(Look(vm)->addresses.empty());
}

TEST_F(NetworkContract, IsUnavailableWhileTheNetworkOrBridgeIsNotThere) {
  const VmId vm = NewVm();
  for (const char* network : {"nowhere", "bridge:vmonce-nowhere"}) {
    auto order = Domain(vm);
    order.spec.network = network;
    const Status defined = driver_->Define(order, Guard(1));
    ASSERT_FALSE(defined);
    EXPECT_EQ(defined.error().code, ErrorCode::kUnavailable) << defined.error().detail;
    EXPECT_FALSE(Look(vm));
  }
}

// What another machine has to boot from is brought to its pool, once.
class RemoteContract : public DaemonContract<RemoteBed> {
 protected:
  std::vector<std::string> Kernels() {
    std::vector<std::string> names;
    const PoolHandle pool(virStoragePoolLookupByName(bed_->connection(), "vmonce"));
    virStorageVolPtr* volumes = nullptr;
    const int count = virStoragePoolListAllVolumes(pool.get(), &volumes, 0);
    for (int i = 0; i < count; ++i) {
      const VolumeHandle volume(volumes[i]);
      const std::string name = virStorageVolGetName(volume.get());
      if (name.starts_with("vmonce-kernel-")) names.push_back(name);
    }
    std::free(volumes);
    std::ranges::sort(names);  // libvirt gives them in any order.
    return names;
  }
};

TEST_F(RemoteContract, BringsKernelAndInitrdToThePoolOnceForAllMachines) {
  const VmId first = NewVm();
  Make(first, 1);
  const auto kernels = Kernels();
  EXPECT_EQ(kernels.size(), 4u);  // Two files, and that each is whole.
  const VmId second = NewVm();
  Make(second, 1);
  EXPECT_EQ(Kernels(), kernels);
}

// A disk of the image store: here, and not to be seen from there.
class RemoteImageContract : public RemoteContract {
 protected:
  RemoteImageContract() {
    // What cannot be compressed away, in a file that is no whole number of packets.
    for (int i = 0; i < 1'500'000; ++i) content_ += static_cast<char>(bed_->random().Next());
    content_[510] = '\x55';
    content_[511] = '\xaa';
    content_.resize(1'500'160);
    EXPECT_TRUE(WriteFileAtomically(path_, content_, 0444));
    digest_ = Sha256(content_);
  }
  ~RemoteImageContract() override { EXPECT_TRUE(driver_->RemoveImage(digest_)); }

  ports::DiskOrder Overlay(const VmId& vm) {
    ports::DiskOrder order = Disk(vm);
    order.base_path = path_;
    order.base_format = "raw";
    order.base_digest = digest_;
    return order;
  }
  ports::ImageTransfer Bring(ports::Hypervisor& driver, const VmId& vm) {
    const auto transfer = driver.BringImage({vm, digest_, path_}, Guard(1));
    EXPECT_TRUE(transfer) << transfer.error().detail;
    return transfer.value_or(ports::ImageTransfer{});
  }
  // A driver that sends one packet at a time.
  std::unique_ptr<LibvirtDriver> NewSlowDriver() {
    auto uri = ParseHostUri(bed_->daemon().RemoteUri());
    EXPECT_TRUE(uri);
    auto driver =
        std::make_unique<LibvirtDriver>(LibvirtOptions{.uri = *uri,
                                                       .pool = "vmonce",
                                                       .scratch = bed_->daemon().dir().path(),
                                                       .events = TestEvents(),
                                                       .image_slice = Milliseconds(0)},
                                        bed_->clock(), *threads_, *logger_);
    EXPECT_TRUE(driver->Connect(TestMarker(), ports::MarkerPolicy::kRequire));
    return driver;
  }
  std::string Brought() {
    return ReadWholeFile(bed_->daemon().PoolPath() + "/" +
                             model::ImageVolumeName(TestMarker().ledger, digest_),
                         4 << 20)
        .value_or("");
  }

  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  const std::unique_ptr<Logger> logger_ = NewNullLogger();
  const TempDir store_;
  const std::string path_ = store_.File("image");
  std::string content_;
  Digest digest_{};
};

TEST_F(RemoteImageContract, IsSentInPiecesAndUsedOnlyWhenAllOfItIsThere) {
  const VmId vm = NewVm();
  const auto slow = NewSlowDriver();
  ports::ImageTransfer transfer;
  int pieces = 0;
  for (transfer.is_complete = false; !transfer.is_complete && pieces < 20; ++pieces) {
    const Status early = slow->CreateDisk(Overlay(vm), Guard(1));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, ErrorCode::kUnavailable) << early.error().detail;
    const std::int64_t before = transfer.sent;
    transfer = Bring(*slow, vm);
    EXPECT_GT(transfer.sent, before);
  }
  EXPECT_EQ(pieces, 6);
  EXPECT_EQ(transfer.sent, static_cast<std::int64_t>(content_.size()));
  EXPECT_TRUE(Brought() == content_);
  const Status made = driver_->CreateDisk(Overlay(vm), Guard(1));
  EXPECT_TRUE(made) << made.error().detail;
}

TEST_F(RemoteImageContract, BeginsAnewOverAnotherConnectionAndIsSentOnceForAllDisks) {
  const VmId first = NewVm();
  EXPECT_FALSE(Bring(*NewSlowDriver(), first).is_complete);
  EXPECT_TRUE(Bring(*driver_, first).is_complete);
  EXPECT_TRUE(Brought() == content_);
  const VmId second = NewVm();
  EXPECT_EQ(Bring(*driver_, second).sent, 0);
  EXPECT_TRUE(driver_->CreateDisk(Overlay(first), Guard(1)));
  EXPECT_TRUE(driver_->CreateDisk(Overlay(second), Guard(1)));
}

TEST_F(RemoteImageContract, IsRemovedOnceNoDiskStandsOnIt) {
  const VmId vm = NewVm();
  ASSERT_TRUE(Bring(*driver_, vm).is_complete);
  ASSERT_TRUE(driver_->CreateDisk(Overlay(vm), Guard(1)));
  EXPECT_EQ(driver_->ListImages().value(), std::vector<Digest>{digest_});
  const Status kept = driver_->RemoveImage(digest_);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kConflict) << kept.error().detail;
  // As usable as before.
  const VmId other = NewVm();
  EXPECT_TRUE(driver_->CreateDisk(Overlay(other), Guard(1)));
  for (const VmId& made : {vm, other}) EXPECT_TRUE(driver_->DeleteDisk(made, Guard(1)));
  EXPECT_TRUE(driver_->RemoveImage(digest_));
  EXPECT_TRUE(driver_->ListImages().value().empty());
  EXPECT_EQ(Brought(), "");
  const Status gone = driver_->CreateDisk(Overlay(vm), Guard(1));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kUnavailable) << gone.error().detail;
}

TEST_F(RemoteImageContract, TellsAFileThatIsNotHereAndALeaseThatIsOver) {
  const VmId vm = NewVm();
  const auto late = driver_->BringImage({vm, digest_, path_}, TooLate());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kFenced);
  const auto absent = driver_->BringImage({vm, digest_, path_ + "-not"}, Guard(1));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound) << absent.error().detail;
}

TEST_F(RemoteContract, CannotSeeWhichPortsAreInUseThere) {
  auto ports = driver_->PortsInUse("127.0.0.1", {{model::Protocol::kTcp, 20'000}});
  ASSERT_FALSE(ports);
  EXPECT_EQ(ports.error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace vmonce::hypervisor
