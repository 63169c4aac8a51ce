#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fake_clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "hypervisor/image_files.h"
#include "model/image_limits.h"

namespace vmonce::hypervisor {
namespace {

namespace limits = model::limits;

class ImageFiles : public testing::Test {
 protected:
  ImageFiles() { Open(); }

  void Open(std::int64_t spare_bytes = 0) {
    store_.reset();
    auto opened = FileImageStore::Open({directory_.File("images"), spare_bytes}, clock_, *threads_);
    ASSERT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
  }
  Result<ports::ImageProgress> Write(const std::string& content, std::int64_t offset,
                                     std::string_view bytes) {
    return store_->Write(
        {Sha256(content), static_cast<std::int64_t>(content.size()), offset, bytes});
  }
  Digest Put(const std::string& content) {
    const auto done = Write(content, 0, content);
    EXPECT_TRUE(done && done->is_complete);
    return Sha256(content);
  }
  std::string RunTool(const std::vector<std::string>& argv) {
    const auto ran = RunProcess({.argv = argv, .timeout = Milliseconds(60'000)});
    EXPECT_TRUE(ran && ran->Succeeded());
    return ReadWholeFile(argv.back(), 64 << 20).value_or("");
  }
  // As if it had been sent just now, by the store's clock.
  void MakeNew(const Digest& digest) {
    const timespec now{ToUnixMs(clock_.Now()) / 1000, 0};
    const timespec times[] = {now, now};
    EXPECT_EQ(utimensat(AT_FDCWD, store_->PathOf(digest).c_str(), times, 0), 0);
  }
  int FilesIn(const std::string& part) {
    int count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_.File("images" + part))) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  TempDir directory_;
  FakeClock clock_;
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  std::unique_ptr<FileImageStore> store_;
};

TEST_F(ImageFiles, PublishesAWholeFileUnderItsHashAndNeverWritesItAgain) {
  const std::string content = "some disk";
  auto progress = Write(content, 0, "some ");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->received, 5);
  EXPECT_FALSE(progress->is_complete);
  EXPECT_EQ(store_->SizeOf(Sha256(content)).error().code, ErrorCode::kNotFound);
  progress = Write(content, 5, "disk");
  ASSERT_TRUE(progress);
  EXPECT_TRUE(progress->is_complete);
  const std::string path = store_->PathOf(Sha256(content));
  EXPECT_EQ(ReadWholeFile(path, 100), content);
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0444u);
  EXPECT_EQ(FilesIn("/incoming"), 0);
  // Whoever sends it again hears that it is there.
  progress = Write(content, 0, "");
  EXPECT_TRUE(progress && progress->is_complete);
  EXPECT_EQ(FilesIn(""), 1);
}

TEST_F(ImageFiles, WritesOnlyTheNextPartAndSaysWhereToGoOn) {
  const std::string content = "0123456789";
  ASSERT_TRUE(Write(content, 0, "01234"));
  // A lost answer makes a client send a part again; a restart makes it send too much.
  for (const std::int64_t offset : {0, 3, 7}) {
    const auto repeated = Write(content, offset, "xx");
    ASSERT_TRUE(repeated);
    EXPECT_EQ(repeated->received, 5) << offset;
  }
  EXPECT_TRUE(Write(content, 5, "56789")->is_complete);
}

TEST_F(ImageFiles, DropsWhatDoesNotHaveTheHashThatWasSaid) {
  const auto wrong = Write("0123456789", 0, "0123456788");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(FilesIn("") + FilesIn("/incoming"), 0);
  EXPECT_TRUE(Write("0123456789", 0, "0123456789")->is_complete);
}

TEST_F(ImageFiles, LeavesNothingOfAnUploadThatEnds) {
  ASSERT_TRUE(Write("0123456789", 0, "01234"));
  store_->Abandon(Sha256("0123456789"));
  EXPECT_EQ(FilesIn("/incoming"), 0);
  ASSERT_TRUE(Write("0123456789", 0, "01234"));
  clock_.Advance(limits::kImageUploadIdle);
  ASSERT_TRUE(store_->Sweep({}, Milliseconds(0)));
  EXPECT_EQ(FilesIn("/incoming"), 0);
  // A service that was killed left it; the next one begins anew.
  ASSERT_TRUE(WriteFileAtomically(directory_.File("images/incoming/left"), "x", 0600));
  Open();
  EXPECT_EQ(FilesIn("/incoming"), 0);
  EXPECT_EQ(Write("0123456789", 5, "56789")->received, 0);
}

TEST_F(ImageFiles, RefusesWhatIsTooMuchOrSenselessBeforeTheFirstByte) {
  EXPECT_EQ(store_->Write({Sha256("x"), 0, 0, ""}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_->Write({Sha256("x"), 10, 8, "xyz"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_->Write({Sha256("x"), limits::kImageFileBytes + 1, 0, ""}).error().code,
            ErrorCode::kInvalid);
  ASSERT_TRUE(Write("first", 0, "f"));
  ASSERT_TRUE(Write("second", 0, "s"));
  EXPECT_EQ(Write("third", 0, "t").error().code, ErrorCode::kUnavailable);
  // No disk has as much as is to be kept free here.
  Open(std::int64_t{1} << 60);
  EXPECT_EQ(Write("first", 0, "f").error().code, ErrorCode::kUnavailable);
}

TEST_F(ImageFiles, ReadsTheFormatFromTheHeader) {
  const std::string path = directory_.File("disk.qcow2");
  const std::string qcow2 =
      RunTool({"qemu-img", "create", "-q", "-f", "qcow2", "-o", "size=3M", path});
  const auto facts = store_->InspectDisk(Put(qcow2));
  ASSERT_TRUE(facts) << facts.error().detail;
  EXPECT_EQ(facts->format, "qcow2");
  EXPECT_EQ(facts->virtual_bytes, 3 << 20);

  const std::string bootable = std::string(510, 'x') + "\x55\xaa";
  EXPECT_EQ(store_->InspectDisk(Put(bootable))->format, "raw");
  EXPECT_TRUE(store_->CheckBootable(Sha256(bootable)));
  EXPECT_EQ(store_->CheckBootable(Put(std::string(512, 'x'))).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_->InspectDisk(Put("a text")).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_->InspectDisk(Sha256("absent")).error().code, ErrorCode::kNotFound);
  const std::string kernel = std::string(0x202, '\0') + "HdrS" + std::string(1000, '\0');
  EXPECT_TRUE(store_->CheckKernel(Put(kernel)));
  EXPECT_EQ(store_->InspectDisk(Sha256(kernel)).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_->CheckKernel(Sha256(bootable)).error().code, ErrorCode::kInvalid);
}

// A base that names another file would let whoever sent it read any file of the host.
TEST_F(ImageFiles, RefusesAQcow2ThatNamesAnotherFile) {
  const std::string path = directory_.File("chained.qcow2");
  const std::string chained = RunTool(
      {"qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", "/etc/hostname", path});
  EXPECT_EQ(store_->InspectDisk(Put(chained)).error().code, ErrorCode::kInvalid);
  const std::string split_path = directory_.File("split.qcow2");
  const std::string split =
      RunTool({"qemu-img", "create", "-q", "-f", "qcow2", "-o",
               "size=1M,data_file=" + directory_.File("data.raw"), split_path});
  EXPECT_EQ(store_->InspectDisk(Put(split)).error().code, ErrorCode::kInvalid);
}

TEST_F(ImageFiles, SweepsOnlyWhatNobodyWants) {
  const Digest wanted = Put("wanted");
  const Digest unwanted = Put("unwanted");
  ASSERT_TRUE(WriteFileAtomically(directory_.File("images/notes.txt"), "a person's", 0600));
  MakeNew(wanted);
  MakeNew(unwanted);
  EXPECT_EQ(store_->Sweep(std::span(&wanted, 1), limits::kImageFileIdle), 0);
  clock_.Advance(limits::kImageFileIdle);
  EXPECT_EQ(store_->Sweep(std::span(&wanted, 1), limits::kImageFileIdle), 1);
  EXPECT_TRUE(store_->SizeOf(wanted));
  EXPECT_FALSE(store_->SizeOf(unwanted));
  EXPECT_TRUE(store_->Remove(wanted));
  EXPECT_TRUE(store_->Remove(wanted));
  EXPECT_EQ(FilesIn(""), 1);
}

}  // namespace
}  // namespace vmonce::hypervisor
