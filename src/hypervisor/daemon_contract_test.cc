// What only a libvirt daemon can do: end without its machines, hang, have networks, be elsewhere.
#include <gmock/gmock.h>

#include <algorithm>

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

TEST_F(RemoteContract, CannotSeeWhichPortsAreInUseThere) {
  auto ports = driver_->PortsInUse("127.0.0.1", {{model::Protocol::kTcp, 20'000}});
  ASSERT_FALSE(ports);
  EXPECT_EQ(ports.error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace vmonce::hypervisor
