// What the contract suites of ports/hypervisor.h share: a driver on a bed, and orders for it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hypervisor/driver_contract_beds.h"

namespace vmonce::hypervisor {

template <typename BedType>
class DriverContract : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (bed_ == nullptr) bed_ = std::make_unique<BedType>();
  }

  void SetUp() override {
    if (bed_->driver == nullptr) Open();
    driver_ = bed_->driver.get();
  }

  void TearDown() override {
    for (const model::VmId& vm : made_) bed_->Remove(vm);
    for (const model::VmId& vm : made_) {
      EXPECT_TRUE(driver_->DeleteDisk(vm, Guard(kLast)));
      EXPECT_TRUE(driver_->DeleteSeed(vm, Guard(kLast)));
    }
  }

  // As a service that starts again, unconnected.
  void Restart() {
    bed_->driver.reset();  // An embedded root has one driver at a time.
    bed_->driver = bed_->NewDriver();
    driver_ = bed_->driver.get();
  }

  void Open() {
    Restart();
    auto facts = driver_->Connect(TestMarker(), ports::MarkerPolicy::kWriteIfNone);
    ASSERT_TRUE(facts) << facts.error().detail;
  }

  model::VmId NewVm() {
    const model::VmId vm{NewUuidV7(bed_->clock(), bed_->random())};
    made_.push_back(vm);
    return vm;
  }

  static model::Label LabelOf(const model::LedgerId& ledger) {
    return {.ledger = ledger,
            .host = TestMarker().host,
            .project = {"default"},
            .key_hash = std::string(64, 'a'),
            .fingerprint = std::string(64, 'b'),
            .operation = {*ParseUuid("01900000-0000-7000-8000-000000000001")},
            .index = 2,
            .fence = {1},
            .sequence = 7};
  }

  ports::DiskOrder Disk(const model::VmId& vm) {
    const model::Image image = bed_->Image();
    return {.vm = vm,
            .name = model::DiskName(TestMarker().ledger, vm),
            .base_path = image.disk_path,
            .base_format = image.disk_format};
  }

  ports::SeedOrder Seed(const model::VmId& vm) {
    return {.vm = vm,
            .name = model::SeedName(TestMarker().ledger, vm),
            .instance_id = ToString(vm),
            .hostname = "guest-one",
            .ssh_keys = {"ssh-ed25519 AAAA one@example"},
            .user_data = "#cloud-config\n# marked user data\n"};
  }

  ports::DomainOrder Domain(const model::VmId& vm) {
    return {.vm = vm,
            .name = model::DomainName(TestMarker().ledger, vm),
            .label = LabelOf(TestMarker().ledger),
            .spec = {.image = bed_->Image(), .memory_mib = 128, .hostname = "guest-one"},
            .mac = model::MacAddress(vm),
            .disk_name = model::DiskName(TestMarker().ledger, vm),
            .seed_name = model::SeedName(TestMarker().ledger, vm)};
  }

  ports::EffectGuard Guard(std::int64_t fence) { return {.fence = {fence}}; }
  ports::EffectGuard TooLate() {
    return {.fence = {kLast}, .deadline = bed_->clock().Monotonic() - Milliseconds(1)};
  }

  // Everything up to a defined machine.
  void Make(const model::VmId& vm, std::int64_t fence) {
    const Status disk = driver_->CreateDisk(Disk(vm), Guard(fence));
    ASSERT_TRUE(disk) << disk.error().detail;
    const Status seed = driver_->CreateSeed(Seed(vm), Guard(fence));
    ASSERT_TRUE(seed) << seed.error().detail;
    const Status defined = driver_->Define(Domain(vm), Guard(fence));
    ASSERT_TRUE(defined) << defined.error().detail;
  }

  void Start(const model::VmId& vm, std::int64_t fence) {
    const Status started = driver_->Start(vm, Guard(fence));
    ASSERT_TRUE(started) << started.error().detail;
  }

  std::optional<ports::DomainSighting> Look(const model::VmId& vm) {
    auto seen = driver_->Look(vm);
    EXPECT_TRUE(seen) << seen.error().detail;
    return seen ? *seen : std::nullopt;
  }

  std::vector<std::string> VolumesOf(const model::VmId& vm) {
    auto all = driver_->ListVolumes();
    EXPECT_TRUE(all) << all.error().detail;
    std::vector<std::string> names;
    for (const auto& volume : all ? *all : std::vector<ports::VolumeSighting>()) {
      if (volume.vm == vm) names.push_back(volume.name);
    }
    std::ranges::sort(names);
    return names;
  }

  int TimesListed(const model::VmId& vm) {
    auto all = driver_->List();
    EXPECT_TRUE(all) << all.error().detail;
    if (!all) return -1;
    return static_cast<int>(
        std::ranges::count_if(*all, [&](const auto& domain) { return domain.id == vm; }));
  }

  struct NamedEffect {
    const char* name;
    std::function<Status(const ports::EffectGuard&)> run;
  };
  // Every effect there is, on this VM.
  std::vector<NamedEffect> Effects(const model::VmId& vm) {
    auto& driver = *driver_;
    return {
        {"create_disk", [&, vm](const auto& g) { return driver.CreateDisk(Disk(vm), g); }},
        {"create_seed", [&, vm](const auto& g) { return driver.CreateSeed(Seed(vm), g); }},
        {"define", [&, vm](const auto& g) { return driver.Define(Domain(vm), g); }},
        {"stamp_fence", [&, vm](const auto& g) { return driver.StampFence(vm, g); }},
        {"start", [&, vm](const auto& g) { return driver.Start(vm, g); }},
        {"shutdown", [&, vm](const auto& g) { return driver.Shutdown(vm, g); }},
        {"reboot", [&, vm](const auto& g) { return driver.Reboot(vm, g); }},
        {"destroy", [&, vm](const auto& g) { return driver.Destroy(vm, g); }},
        {"undefine", [&, vm](const auto& g) { return driver.Undefine(vm, g); }},
        {"delete_seed", [&, vm](const auto& g) { return driver.DeleteSeed(vm, g); }},
        {"delete_disk", [&, vm](const auto& g) { return driver.DeleteDisk(vm, g); }},
    };
  }

  void ExpectEveryEffect(const model::VmId& vm, const ports::EffectGuard& guard, ErrorCode code) {
    for (const NamedEffect& effect : Effects(vm)) {
      const Status done = effect.run(guard);
      ASSERT_FALSE(done) << effect.name;
      EXPECT_EQ(done.error().code, code) << effect.name << ": " << done.error().detail;
    }
  }

  static constexpr std::int64_t kLast = 1'000'000;  // Above every fence of the suite.

  // For all suites: libvirt has one embedded root in a process.
  static inline std::unique_ptr<BedType> bed_;
  ports::Hypervisor* driver_ = nullptr;
  std::vector<model::VmId> made_;
};

}  // namespace vmonce::hypervisor
