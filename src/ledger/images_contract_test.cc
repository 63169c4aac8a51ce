#include <thread>

#include "ledger/contract_world.h"
#include "model/image_limits.h"
#include "ports/image_registry.h"

namespace vmonce::ledger {
namespace {

using ports::ImageAddition;
using ports::ImageRemoval;

class ImageRegistryContract : public LedgerContract {
 protected:
  // Adapters of the ledger keep its images too.
  ports::ImageRegistry& registry_ = dynamic_cast<ports::ImageRegistry&>(*world.ledger);

  model::StoredImage Image(const std::string& name, const std::string& content,
                           std::vector<std::string> aliases = {}) {
    model::StoredImage image;
    image.id = world.NewId();
    image.name = name;
    image.disk = Sha256(content);
    image.disk_format = "qcow2";
    image.aliases = std::move(aliases);
    image.bytes = 42;
    return image;
  }
  ImageAddition Add(const model::StoredImage& image) {
    const auto addition = registry_.AddImage(image);
    EXPECT_TRUE(addition) << addition.error().detail;
    return addition.value_or(ImageAddition{});
  }
  ImageRemoval Remove(const std::string& name) {
    const auto removal = registry_.RemoveImage(name);
    EXPECT_TRUE(removal) << removal.error().detail;
    return removal.value_or(ImageRemoval{});
  }
  ports::Submission CreateOf(const std::string& key, const model::StoredImage& image) {
    ports::Submission submission = world.Create(key, {"vm-" + key});
    model::Image& pinned = std::get<ports::CreateVms>(submission.change).vms.front().spec.image;
    pinned.id = ToString(image.id);
    pinned.name = image.name;
    return submission;
  }
};

INSTANTIATE_TEST_SUITE_P(Images, ImageRegistryContract, AllAdapters(), AdapterName);

TEST_P(ImageRegistryContract, ReadsBackWhatWasAdded) {
  model::StoredImage kernel = Image("tiny", "", {"small", "a"});
  kernel.kind = model::ImageKind::kKernel;
  kernel.disk.reset();
  kernel.disk_format.clear();
  kernel.kernel = Sha256("kernel");
  kernel.initrd = Sha256("initrd");
  kernel.cmdline = "console=ttyS0";
  const ImageAddition added = Add(kernel);
  EXPECT_EQ(added.kind, ImageAddition::Kind::kAdded);
  kernel.aliases = {"a", "small"};
  kernel.added = world.clock.Now();
  EXPECT_EQ(added.image, kernel);
  Add(Image("debian", "disk"));
  const auto images = registry_.StoredImages();
  ASSERT_TRUE(images);
  ASSERT_EQ(images->size(), 2u);
  EXPECT_EQ((*images)[0].name, "debian");
  EXPECT_EQ((*images)[1], kernel);
}

TEST_P(ImageRegistryContract, FindsTheSameContentAgainAndRefusesAnotherUnderItsName) {
  const ImageAddition first = Add(Image("debian", "one"));
  const ImageAddition again = Add(Image("debian", "one", {"latest"}));
  EXPECT_EQ(again.kind, ImageAddition::Kind::kThere);
  EXPECT_EQ(again.image.id, first.image.id);
  EXPECT_EQ(again.image.aliases, std::vector<std::string>{"latest"});
  const ImageAddition other = Add(Image("debian", "two"));
  EXPECT_EQ(other.kind, ImageAddition::Kind::kNameTaken);
  EXPECT_EQ(other.in_the_way, "debian");
  EXPECT_EQ(registry_.StoredImages()->size(), 1u);
}

TEST_P(ImageRegistryContract, MovesAliasesAndNeverNames) {
  Add(Image("debian-12", "one", {"debian"}));
  const ImageAddition moved = Add(Image("debian-13", "two", {"debian"}));
  EXPECT_EQ(moved.image.aliases, std::vector<std::string>{"debian"});
  EXPECT_TRUE(registry_.StoredImages()->front().aliases.empty());
  EXPECT_EQ(Add(Image("other", "three", {"debian-12"})).in_the_way, "debian-12");
  EXPECT_EQ(Add(Image("debian", "three")).in_the_way, "debian");
  EXPECT_EQ(Add(Image("self", "three", {"self"})).in_the_way, "self");
  EXPECT_EQ(registry_.StoredImages()->size(), 2u);
}

TEST_P(ImageRegistryContract, RemovesOnlyWhatNoVmStandsOn) {
  const model::StoredImage image = Add(Image("debian", "one", {"latest"})).image;
  EXPECT_EQ(Remove("latest").kind, ImageRemoval::Kind::kAbsent);
  world.MustAccept(CreateOf("ready", image));
  world.MustAccept(CreateOf("failed", image));
  ImageRemoval refused = Remove("debian");
  EXPECT_EQ(refused.kind, ImageRemoval::Kind::kInUse);
  EXPECT_EQ(refused.users, 2);
  // Failed ones may be tried again with the same key.
  world.MakeFailed(true);
  EXPECT_EQ(Remove("debian").users, 2);
  const auto vms = world.ledger->ListVms(world.project, {}, {});
  for (const model::Vm& vm : vms->rows) {
    world.MustAccept(world.Delete("", vm.id));
  }
  EXPECT_EQ(Remove("debian").users, 2) << "they are being deleted, not gone";
  world.MakeDeleted();
  const ImageRemoval removed = Remove("debian");
  EXPECT_EQ(removed.kind, ImageRemoval::Kind::kRemoved);
  EXPECT_EQ(removed.image, image);
  EXPECT_TRUE(registry_.StoredImages()->empty());
  EXPECT_EQ(Remove("debian").kind, ImageRemoval::Kind::kAbsent);
  // Its alias is free, and another image may have its name.
  EXPECT_EQ(Add(Image("latest", "one")).kind, ImageAddition::Kind::kAdded);
}

TEST_P(ImageRegistryContract, RefusesACreateOfAnImageThatWasRemovedAndKeepsItsKeyFree) {
  const model::StoredImage image = Add(Image("debian", "one")).image;
  const ports::Submission late = CreateOf("key-1", image);
  Remove("debian");
  EXPECT_EQ(WhyDeclined(world.Accept(late)), ports::DeclineReason::kImageGone);
  EXPECT_EQ(world.Usage().vms, 0);
  // The same name with another content is another image.
  const model::StoredImage next = Add(Image("debian", "two")).image;
  EXPECT_EQ(WhyDeclined(world.Accept(late)), ports::DeclineReason::kImageGone);
  world.MustAccept(CreateOf("key-1", next));
}

TEST_P(ImageRegistryContract, AnImageIsRemovedOrUsedButNeverBoth) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = fmt::format("image-{}", round);
    const model::StoredImage image = Add(Image(name, name)).image;
    const ports::Submission create = CreateOf(fmt::format("key-{}", round), image);
    ImageRemoval removal;
    // tidy: allow threads: two callers at once are what this test is about
    std::thread remover([&] { removal = Remove(name); });
    const auto outcome = world.Accept(create);
    remover.join();
    const bool is_used = As<ports::Accepted>(outcome) != nullptr;
    EXPECT_NE(is_used, removal.kind == ImageRemoval::Kind::kRemoved);
  }
}

TEST_P(ImageRegistryContract, StopsAtItsBound) {
  for (int i = 0; i < model::limits::kStoredImages; ++i) Add(Image(fmt::format("i{}", i), "same"));
  EXPECT_EQ(Add(Image("more", "same")).kind, ImageAddition::Kind::kFull);
  EXPECT_EQ(Add(Image("i0", "same")).kind, ImageAddition::Kind::kThere);
}

class ImageFileContract : public ImageRegistryContract {
 protected:
  static constexpr const char* kPath = "/images/\"tiny\".qcow2";

  ports::ImageFileRecords& records_ = dynamic_cast<ports::ImageFileRecords&>(*world.ledger);

  FileIdentity File(std::int64_t bytes) { return {bytes, 7, -1, world.clock.Now()}; }
  std::int64_t Keep(const FileIdentity& now) {
    const auto verdict = records_.KeepFile(kPath, now);
    EXPECT_TRUE(verdict) << verdict.error().detail;
    return verdict ? verdict->users : -1;
  }
  std::int64_t Check(const std::optional<FileIdentity>& now) {
    const auto verdict = records_.CheckFile(kPath, now);
    EXPECT_TRUE(verdict) << verdict.error().detail;
    return verdict ? verdict->users : -1;
  }
  // A VM that has a disk over the file.
  void Make(const std::string& key) {
    ports::Submission submission = world.Create(key, {"vm-" + key});
    std::get<ports::CreateVms>(submission.change).vms.front().spec.image.disk_path = kPath;
    world.MustAccept(submission);
    world.Drive({model::VmState::kCreating, model::VmState::kReady},
                model::OperationState::kSucceeded);
  }
};

INSTANTIATE_TEST_SUITE_P(Files, ImageFileContract, AllAdapters(), AdapterName);

TEST_P(ImageFileContract, KeepsWhatAFileWasAtItsFirstOverlayUntilNoDiskStandsOnIt) {
  const FileIdentity first = File(1);
  EXPECT_EQ(Check(first), 0);
  Make("a");
  EXPECT_EQ(Keep(first), 0);
  EXPECT_EQ(Keep(first), 0);
  world.clock.Advance(Milliseconds(1'000));
  const FileIdentity second = File(2);
  EXPECT_EQ(Check(second), 1);
  EXPECT_EQ(Check(std::nullopt), 1);
  EXPECT_EQ(Keep(second), 1);
  // Back again, and nothing was lost by asking.
  EXPECT_EQ(Check(first), 0);
  EXPECT_EQ(Keep(first), 0);
}

TEST_P(ImageFileContract, ForgetsAFileThatNoDiskStandsOn) {
  const FileIdentity first = File(1);
  EXPECT_EQ(Keep(first), 0);
  world.clock.Advance(Milliseconds(1'000));
  // Accepted after the file became what it is: its disk is made over that.
  const FileIdentity second = File(2);
  world.clock.Advance(Milliseconds(1'000));
  Make("a");
  EXPECT_EQ(Keep(second), 0);
  world.clock.Advance(Milliseconds(1'000));
  EXPECT_EQ(Check(File(3)), 1);
  EXPECT_EQ(Check(second), 0);
}

}  // namespace
}  // namespace vmonce::ledger
