#include "hypervisor/image_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/sha256_stream.h"
#include "base/unique_fd.h"
#include "hypervisor/base_image.h"
#include "hypervisor/image_header.h"
#include "hypervisor/scratch.h"
#include "model/image_limits.h"

namespace vmonce::hypervisor {
namespace {

namespace limits = model::limits;
using ports::ImagePart;
using ports::ImageProgress;

constexpr std::int64_t kSectorBytes = 512;

std::unexpected<Error> Unavailable(int error_number, const std::string& path) {
  return Fail(ErrorCode::kUnavailable, ErrnoError(error_number, path).detail);
}

Status SyncDirectory(const std::string& path) {
  const UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.IsOpen() && fsync(directory.get()) == 0) return {};
  return Unavailable(errno, path);
}

Status WriteAt(int file, std::string_view bytes, std::int64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Unavailable(errno, path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

Status CheckSize(const ImagePart& part) {
  const auto length = static_cast<std::int64_t>(part.bytes.size());
  if (part.size < 1 || part.size > limits::kImageFileBytes) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a file of {} bytes is no image (1 byte to 1 TiB)", part.size));
  }
  if (part.offset < 0 || part.offset > part.size || length > part.size - part.offset) {
    return Fail(ErrorCode::kInvalid, fmt::format("the part from {} on does not lie within {} bytes",
                                                 part.offset, part.size));
  }
  return {};
}

// So that a file that cannot fit is refused before its first byte is sent.
Status CheckRoom(const std::string& directory, std::int64_t bytes, std::int64_t spare) {
  struct statvfs fs{};
  if (statvfs(directory.c_str(), &fs) != 0) return Unavailable(errno, directory);
  const auto free = static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
  if (bytes <= free - spare) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{} has {} MiB free; the image needs {} MiB, and {} MiB stay for the "
                          "service",
                          directory, free >> 20, (bytes >> 20) + 1, spare >> 20));
}

std::string WithoutPath(std::string detail, const std::string& path) {
  const std::string named = "image " + path;
  for (auto at = detail.find(named); at != std::string::npos; at = detail.find(named)) {
    detail.replace(at, named.size(), "it");
  }
  return detail;
}

}  // namespace

struct FileImageStore::Upload {
  Digest digest{};
  std::int64_t size = 0;
  std::string path;
  UniqueFd file;
  Sha256Stream hash;
  std::int64_t received = 0;
  std::int64_t synced = 0;
  Instant last_used{};
  bool is_taken = false;
};

Result<std::unique_ptr<FileImageStore>> FileImageStore::Open(ImageFilesOptions options,
                                                             Clock& clock, Threads& threads) {
  const std::string incoming = options.directory + "/incoming";
  if (auto made = MakePrivateDirectories(incoming); !made) return std::unexpected(made.error());
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(incoming, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    unlink(entry->path().c_str());
  }
  return std::make_unique<FileImageStore>(std::move(options), clock, threads);
}

FileImageStore::FileImageStore(ImageFilesOptions options, Clock& clock, Threads& threads)
    : options_(std::move(options)), clock_(clock), monitor_(threads.NewMonitor()) {}

FileImageStore::~FileImageStore() {
  MonitorLock lock(*monitor_);
  for (const UploadPointer& upload : uploads_) unlink(upload->path.c_str());
}

std::string FileImageStore::PathOf(const Digest& digest) const {
  return fmt::format("{}/{}", options_.directory, ToHex(digest));
}

std::string FileImageStore::TemporaryOf(const Digest& digest) const {
  return fmt::format("{}/incoming/{}", options_.directory, ToHex(digest));
}

Result<ImageProgress> FileImageStore::Write(const ImagePart& part) {
  if (auto sane = CheckSize(part); !sane) return std::unexpected(sane.error());
  const auto there = SizeOf(part.digest);
  if (there) {
    if (*there == part.size) return ImageProgress{*there, true};
    return Fail(ErrorCode::kInvalid,
                fmt::format("this content has {} bytes, not {}", *there, part.size));
  }
  if (there.error().code != ErrorCode::kNotFound) return std::unexpected(there.error());
  auto taken = Take(part);
  if (!taken) return std::unexpected(taken.error());
  Upload& upload = **taken;
  Status done;
  if (part.offset == upload.received) done = Append(upload, part.bytes);
  const bool is_whole = done && upload.received == upload.size;
  if (is_whole) done = Publish(upload);
  GiveBack(*taken, is_whole || !done);
  if (!done) return std::unexpected(done.error());
  return ImageProgress{upload.received, is_whole};
}

Result<FileImageStore::UploadPointer> FileImageStore::Take(const ImagePart& part) {
  MonitorLock lock(*monitor_);
  DropIdle();
  const auto found = std::ranges::find(uploads_, part.digest,
                                       [](const UploadPointer& upload) { return upload->digest; });
  UploadPointer upload;
  if (found != uploads_.end()) {
    upload = *found;
    if (upload->is_taken) {
      return Fail(ErrorCode::kUnavailable, "another request sends this content at this moment");
    }
    if (upload->size != part.size) {
      return Fail(
          ErrorCode::kInvalid,
          fmt::format("this content is being sent with {} bytes, not {}", upload->size, part.size));
    }
  } else {
    auto begun = Begin(part);
    if (!begun) return begun;
    upload = *std::move(begun);
    uploads_.push_back(upload);
  }
  upload->is_taken = true;
  return upload;
}

Result<FileImageStore::UploadPointer> FileImageStore::Begin(const ImagePart& part) {
  if (uploads_.size() >= limits::kImageUploads) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{} other files are being sent", uploads_.size()));
  }
  if (auto room = CheckRoom(options_.directory, part.size, options_.spare_bytes); !room) {
    return std::unexpected(room.error());
  }
  auto upload = std::make_shared<Upload>();
  upload->digest = part.digest;
  upload->size = part.size;
  upload->path = TemporaryOf(part.digest);
  upload->file = UniqueFd(
      open(upload->path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!upload->file.IsOpen()) return Unavailable(errno, upload->path);
  return upload;
}

Status FileImageStore::Append(Upload& upload, std::string_view bytes) {
  if (auto written = WriteAt(upload.file.get(), bytes, upload.received, upload.path); !written) {
    return written;
  }
  upload.hash.Add(bytes);
  upload.received += static_cast<std::int64_t>(bytes.size());
  if (upload.received - upload.synced < limits::kImageSyncBytes) return {};
  if (fdatasync(upload.file.get()) != 0) return Unavailable(errno, upload.path);
  upload.synced = upload.received;
  return {};
}

Status FileImageStore::Publish(Upload& upload) {
  if (upload.hash.Finish() != upload.digest) {
    return Fail(ErrorCode::kInvalid,
                "what was sent does not have the SHA-256 that was said: the file changed while it "
                "was read, or was damaged on its way; send it again");
  }
  if (fchmod(upload.file.get(), 0444) != 0 || fsync(upload.file.get()) != 0) {
    return Unavailable(errno, upload.path);
  }
  const std::string path = PathOf(upload.digest);
  if (renameat2(AT_FDCWD, upload.path.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0 &&
      errno != EEXIST) {
    return Unavailable(errno, path);
  }
  return SyncDirectory(options_.directory);
}

void FileImageStore::GiveBack(const UploadPointer& upload, bool is_over) {
  MonitorLock lock(*monitor_);
  upload->is_taken = false;
  upload->last_used = clock_.Monotonic();
  if (!is_over) return;
  unlink(upload->path.c_str());
  uploads_.remove(upload);
}

void FileImageStore::DropIdle() {
  const Instant now = clock_.Monotonic();
  std::erase_if(uploads_, [&](const UploadPointer& upload) {
    const bool is_idle = !upload->is_taken && now - upload->last_used >= limits::kImageUploadIdle;
    if (is_idle) unlink(upload->path.c_str());
    return is_idle;
  });
}

void FileImageStore::Abandon(const Digest& digest) {
  MonitorLock lock(*monitor_);
  std::erase_if(uploads_, [&](const UploadPointer& upload) {
    const bool is_meant = upload->digest == digest && !upload->is_taken;
    if (is_meant) unlink(upload->path.c_str());
    return is_meant;
  });
}

Result<std::int64_t> FileImageStore::SizeOf(const Digest& digest) {
  const std::string path = PathOf(digest);
  struct stat file{};
  if (lstat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode)) return file.st_size;
  if (errno == ENOENT) return Fail(ErrorCode::kNotFound, path + " is not in the store");
  return Unavailable(errno, path);
}

Result<std::string> FileImageStore::HeaderOf(const Digest& digest) {
  const std::string path = PathOf(digest);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.IsOpen()) {
    if (errno == ENOENT) return Fail(ErrorCode::kNotFound, path + " is not in the store");
    return Unavailable(errno, path);
  }
  std::string header(limits::kImageHeaderBytes, '\0');
  const ssize_t got = pread(file.get(), header.data(), header.size(), 0);
  if (got < 0) return Unavailable(errno, path);
  header.resize(static_cast<std::size_t>(got));
  return header;
}

Result<ports::DiskFacts> FileImageStore::InspectDisk(const Digest& digest) {
  const auto header = HeaderOf(digest);
  if (!header) return std::unexpected(header.error());
  const auto kind = KindOfFile(*header);
  if (!kind) return std::unexpected(kind.error());
  if (*kind == FileKind::kKernel) {
    return Fail(ErrorCode::kInvalid, "it is a kernel or a program, no disk");
  }
  ports::DiskFacts facts{*kind == FileKind::kQcow2 ? "qcow2" : "raw", 0};
  if (*kind == FileKind::kOther) {
    const auto size = SizeOf(digest);
    if (!size) return std::unexpected(size.error());
    if (*size % kSectorBytes != 0) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("it is neither qcow2 nor a raw disk: {} bytes are no whole number of "
                              "sectors",
                              *size));
    }
    facts.virtual_bytes = *size;
    return facts;
  }
  const auto size = InspectBaseImage(PathOf(digest), facts.format);
  if (!size) {
    if (size.error().code != ErrorCode::kRefused) {
      return Fail(ErrorCode::kUnavailable, size.error().detail);
    }
    // Who sent it knows it by another name.
    return Fail(ErrorCode::kInvalid, WithoutPath(size.error().detail, PathOf(digest)));
  }
  facts.virtual_bytes = *size;
  return facts;
}

Status FileImageStore::CheckBootable(const Digest& digest) {
  const auto header = HeaderOf(digest);
  if (!header) return std::unexpected(header.error());
  if (HasBootSector(*header)) return {};
  return Fail(ErrorCode::kInvalid,
              "it is neither qcow2 nor a raw disk that a machine can boot: its first sector has no "
              "boot signature");
}

Status FileImageStore::CheckKernel(const Digest& digest) {
  const auto header = HeaderOf(digest);
  if (!header) return std::unexpected(header.error());
  const auto kind = KindOfFile(*header);
  if (!kind) return std::unexpected(kind.error());
  if (*kind == FileKind::kKernel) return {};
  return Fail(ErrorCode::kInvalid, "it is no Linux kernel (bzImage or ELF)");
}

Status FileImageStore::Remove(const Digest& digest) {
  const std::string path = PathOf(digest);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return Unavailable(errno, path);
}

Result<int> FileImageStore::Sweep(std::span<const Digest> wanted, Milliseconds age) {
  {
    MonitorLock lock(*monitor_);
    DropIdle();
  }
  int gone = 0;
  const Time now = clock_.Now();
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(options_.directory, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const auto digest = ParseDigest(entry->path().filename().string());
    if (!digest || std::ranges::find(wanted, *digest) != wanted.end()) continue;
    struct stat file{};
    if (lstat(entry->path().c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    if (now - FromUnixMs(file.st_mtim.tv_sec * 1000) < age) continue;
    if (unlink(entry->path().c_str()) == 0) ++gone;
  }
  if (failed) return Unavailable(failed.value(), options_.directory);
  return gone;
}

}  // namespace vmonce::hypervisor
