#include "service/image_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/fake_clock.h"
#include "base/system.h"

namespace vmonce::service {
namespace {

using ports::ImageAddition;
using ports::ImageRemoval;

// Files as their contents; "disk", "raw" and "kernel" say what one is.
class FakeStore final : public ports::ImageStore {
 public:
  Digest Put(const std::string& content) {
    files[Sha256(content)] = content;
    return Sha256(content);
  }
  Result<ports::ImageProgress> Write(const ports::ImagePart& part) override {
    if (write_error) return std::unexpected(*write_error);
    return ports::ImageProgress{part.offset, false};
  }
  void Abandon(const Digest&) override {}
  Result<std::int64_t> SizeOf(const Digest& digest) override {
    if (!files.contains(digest)) return Fail(ErrorCode::kNotFound, "not in the store");
    return static_cast<std::int64_t>(files[digest].size());
  }
  Result<ports::DiskFacts> InspectDisk(const Digest& digest) override {
    if (!files.contains(digest)) return Fail(ErrorCode::kNotFound, "not in the store");
    if (files[digest].starts_with("disk")) return ports::DiskFacts{"qcow2", 1 << 20};
    if (files[digest].starts_with("raw")) return ports::DiskFacts{"raw", 1 << 20};
    return Fail(ErrorCode::kInvalid, "it is a text");
  }
  Status CheckBootable(const Digest& digest) override {
    if (files[digest] == "raw bootable") return {};
    return Fail(ErrorCode::kInvalid, "no boot signature");
  }
  Status CheckKernel(const Digest& digest) override {
    if (files.contains(digest) && files[digest].starts_with("kernel")) return {};
    return Fail(ErrorCode::kInvalid, "no kernel");
  }
  std::string PathOf(const Digest& digest) const override { return "/images/" + ToHex(digest); }
  Status Remove(const Digest& digest) override {
    files.erase(digest);
    return {};
  }
  Result<int> Sweep(std::span<const Digest> wanted, Milliseconds) override {
    kept.assign(wanted.begin(), wanted.end());
    return 0;
  }

  std::map<Digest, std::string> files;
  std::vector<Digest> kept;
  std::optional<Error> write_error;
};

class FakeRegistry final : public ports::ImageRegistry {
 public:
  Result<ImageAddition> AddImage(const model::StoredImage& image) override {
    ImageAddition addition;
    addition.kind = next_kind;
    addition.image = image;
    addition.in_the_way = image.name;
    if (next_kind == ImageAddition::Kind::kAdded) images.push_back(image);
    if (add_error) return std::unexpected(*add_error);
    return addition;
  }
  Result<ImageRemoval> RemoveImage(std::string_view name) override {
    if (users > 0) return ImageRemoval{ImageRemoval::Kind::kInUse, users, {}};
    const auto found = std::ranges::find(images, name, &model::StoredImage::name);
    if (found == images.end()) return ImageRemoval{ImageRemoval::Kind::kAbsent, 0, {}};
    ImageRemoval removal{ImageRemoval::Kind::kRemoved, 0, *found};
    images.erase(found);
    return removal;
  }
  Result<std::vector<model::StoredImage>> StoredImages() override { return images; }

  std::vector<model::StoredImage> images;
  ImageAddition::Kind next_kind = ImageAddition::Kind::kAdded;
  std::int64_t users = 0;
  std::optional<Error> add_error;
};

class ImageServiceTest : public testing::Test {
 protected:
  static model::Image Configured() {
    model::Image image;
    image.name = "tiny";
    image.aliases = {"small"};
    return image;
  }
  AddImageRequest Disk(const std::string& name, const std::string& content) {
    AddImageRequest request;
    request.name = name;
    request.disk = store_.Put(content);
    return request;
  }
  std::string CodeOfAdding(const AddImageRequest& request) {
    const auto added = service_.Add(request);
    return added ? "" : added.error().code;
  }
  std::string CodeOfRemoving(const std::string& name) {
    const auto removed = service_.Remove(name);
    return removed ? "" : removed.error().code;
  }

  FakeClock clock_;
  const std::unique_ptr<Random> random_ = NewSystemRandom();
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  const std::unique_ptr<Logger> logger_ = NewNullLogger();
  FakeStore store_;
  FakeRegistry registry_;
  ImageCatalog catalog_{*threads_, {Configured()}};
  ImageService service_{{registry_, store_, catalog_, clock_, *random_, *threads_, *logger_}};
};

TEST_F(ImageServiceTest, ACreateFindsAnImageAsSoonAsItWasAdded) {
  EXPECT_FALSE(catalog_.Resolve("debian"));
  AddImageRequest request = Disk("debian", "disk of debian");
  request.aliases = {"latest"};
  const auto added = service_.Add(request);
  ASSERT_TRUE(added) << added.error().detail;
  EXPECT_TRUE(added->is_new);
  const auto image = catalog_.Resolve("latest");
  ASSERT_TRUE(image);
  EXPECT_EQ(image->name, "debian");
  EXPECT_EQ(image->id, ToString(added->image.id));
  EXPECT_EQ(image->disk_path, store_.PathOf(*request.disk));
  EXPECT_EQ(image->disk_format, "qcow2");
  EXPECT_TRUE(service_.Remove("debian"));
  EXPECT_FALSE(catalog_.Resolve("latest"));
}

TEST_F(ImageServiceTest, KnowsTheImagesOfTheLedgerAfterARestart) {
  ASSERT_TRUE(service_.Add(Disk("debian", "disk")));
  ImageCatalog catalog(*threads_, {});
  ImageService restarted({registry_, store_, catalog, clock_, *random_, *threads_, *logger_});
  EXPECT_FALSE(catalog.Resolve("debian"));
  ASSERT_TRUE(restarted.Load());
  EXPECT_TRUE(catalog.Resolve("debian"));
}

TEST_F(ImageServiceTest, RefusesWhatIsNoImage) {
  EXPECT_EQ(CodeOfAdding(Disk("text", "a text")), "image_invalid");
  EXPECT_TRUE(store_.files.empty()) << "nothing is left of it";
  EXPECT_EQ(CodeOfAdding(Disk("raw", "raw, not bootable")), "image_invalid");
  EXPECT_EQ(CodeOfAdding(Disk("raw", "raw bootable")), "");
  AddImageRequest wrong_format = Disk("wrong", "disk");
  wrong_format.disk_format = "raw";
  EXPECT_EQ(CodeOfAdding(wrong_format), "image_invalid");
  AddImageRequest absent = Disk("absent", "disk 2");
  store_.files.clear();
  EXPECT_EQ(CodeOfAdding(absent), "image_invalid");
  AddImageRequest kernel;
  kernel.name = "kernel";
  kernel.kind = model::ImageKind::kKernel;
  kernel.kernel = store_.Put("no kern");
  EXPECT_EQ(CodeOfAdding(kernel), "image_invalid");
  kernel.kernel = store_.Put("kernel");
  kernel.initrd.reset();
  // The data disk of a kernel's machine needs no boot sector.
  kernel.disk = store_.Put("raw data");
  EXPECT_EQ(CodeOfAdding(kernel), "");
  EXPECT_EQ(registry_.images.size(), 2u);
}

TEST_F(ImageServiceTest, LeavesTheConfigurationsNamesAlone) {
  EXPECT_EQ(CodeOfAdding(Disk("tiny", "disk")), "image_exists");
  AddImageRequest alias = Disk("debian", "disk");
  alias.aliases = {"small"};
  EXPECT_EQ(CodeOfAdding(alias), "image_exists");
  EXPECT_EQ(CodeOfRemoving("tiny"), "image_in_use");
  EXPECT_EQ(CodeOfRemoving("none"), "image_not_found");
  EXPECT_TRUE(catalog_.Resolve("small"));
  // A later configuration may take the name of a stored image: it counts.
  catalog_.SetStored({{.id = "x", .name = "tiny"}});
  EXPECT_EQ(catalog_.Resolve("tiny")->id, "");
}

TEST_F(ImageServiceTest, SaysHowManyVmsKeepAnImage) {
  ASSERT_TRUE(service_.Add(Disk("debian", "disk")));
  registry_.users = 3;
  const auto removed = service_.Remove("debian");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, "image_in_use");
  EXPECT_TRUE(removed.error().detail.starts_with("3 VMs stand on 'debian'"))
      << removed.error().detail;
  EXPECT_TRUE(catalog_.Resolve("debian"));
  EXPECT_EQ(store_.files.size(), 1u);
}

TEST_F(ImageServiceTest, RemovesOnlyFilesThatNoOtherImageHas) {
  AddImageRequest one = Disk("one", "disk");
  AddImageRequest other = Disk("other", "disk");
  ASSERT_TRUE(service_.Add(one));
  ASSERT_TRUE(service_.Add(other));
  // Sent by somebody who has not added it yet.
  store_.Put("disk in flight");
  ASSERT_TRUE(service_.Remove("one"));
  EXPECT_EQ(store_.files.size(), 2u);
  ASSERT_TRUE(service_.Remove("other"));
  EXPECT_EQ(store_.files.size(), 1u);
  ASSERT_TRUE(service_.Add(Disk("again", "disk")));
  service_.Sweep();
  EXPECT_EQ(store_.kept, std::vector<Digest>{Sha256("disk")});
}

TEST_F(ImageServiceTest, FollowsTheLedgerWhenItsAnswerWasLost) {
  registry_.add_error = Error{ErrorCode::kUnknown, "commit"};
  EXPECT_EQ(CodeOfAdding(Disk("debian", "disk")), "ledger_unavailable");
  EXPECT_TRUE(catalog_.Resolve("debian")) << "it was added all the same";
}

TEST_F(ImageServiceTest, AStoreWithoutRoomIsAPassingProblem) {
  store_.write_error = Error{ErrorCode::kUnavailable, "12 MiB free"};
  const auto written = service_.Write({Sha256("x"), 1, 0, "x"});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, "image_unavailable");
  EXPECT_TRUE(written.error().retry_after);
}

}  // namespace
}  // namespace vmonce::service
