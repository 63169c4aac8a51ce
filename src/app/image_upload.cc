#include "app/image_upload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "app/json_text.h"
#include "base/file.h"
#include "base/sha256_stream.h"
#include "base/unique_fd.h"
#include "model/image_limits.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

std::string Mib(std::int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

class Upload {
 public:
  Upload(const Invocation& run, std::string path)
      : run_(run),
        path_(std::move(path)),
        name_(std::filesystem::path(path_).filename().string()) {}

  std::expected<Digest, ExitCode> Run();

 private:
  Status Open();
  // Up to one part; empty at the end of the file.
  Result<std::string> ReadAt(std::int64_t offset) const;
  std::expected<Digest, ExitCode> Hash();
  std::expected<void, ExitCode> Send(const Digest& digest);
  client::CallResult Put(const Digest& digest, std::int64_t offset, std::string bytes) const;
  void Abandon(const Digest& digest) const;
  void Show(std::string_view what, std::int64_t done);
  ExitCode Failed(const Error& error) const;

  const Invocation& run_;
  const std::string path_;
  const std::string name_;
  UniqueFd file_;
  std::int64_t size_ = 0;
  Instant shown_{};
};

Status Upload::Open() {
  file_ = UniqueFd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file_.IsOpen() || fstat(file_.get(), &status) != 0) {
    return std::unexpected(ErrnoError(errno, path_));
  }
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, path_ + " is no regular file");
  if (status.st_size == 0) return Fail(ErrorCode::kInvalid, path_ + " is empty");
  size_ = status.st_size;
  return {};
}

Result<std::string> Upload::ReadAt(std::int64_t offset) const {
  std::string bytes(limits::kImageChunkBytes, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = pread(file_.get(), bytes.data() + got, bytes.size() - got,
                               offset + static_cast<off_t>(got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return std::unexpected(ErrnoError(errno, path_));
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

std::expected<Digest, ExitCode> Upload::Run() {
  if (const Status opened = Open(); !opened) return std::unexpected(Failed(opened.error()));
  const auto digest = Hash();
  if (!digest) return digest;
  const auto sent = Send(*digest);
  run_.messages.EndLive();
  if (sent) return *digest;
  if (run_.world.stop.stop_requested()) Abandon(*digest);
  return std::unexpected(sent.error());
}

std::expected<Digest, ExitCode> Upload::Hash() {
  Sha256Stream hash;
  for (std::int64_t offset = 0; offset < size_;) {
    if (run_.world.stop.stop_requested()) return std::unexpected(ExitCode::kDetached);
    const auto bytes = ReadAt(offset);
    if (!bytes) return std::unexpected(Failed(bytes.error()));
    if (bytes->empty()) {
      return std::unexpected(
          Failed({ErrorCode::kInvalid, path_ + " became shorter while it was read"}));
    }
    hash.Add(*bytes);
    offset += static_cast<std::int64_t>(bytes->size());
    Show("read", offset);
  }
  return hash.Finish();
}

// The server says where to go on, also after it was restarted and began anew.
std::expected<void, ExitCode> Upload::Send(const Digest& digest) {
  client::CallResult result = Put(digest, 0, "");
  std::int64_t sent = 0;
  int restarts = 0;
  while (result.IsSuccess() && !IsTrueAt(result.json, "is_complete")) {
    const std::int64_t offset = NumberAt(result.json, "received", -1);
    if (offset < 0 || offset >= size_) {
      return std::unexpected(ReportForeignAnswer(run_, "image file " + name_));
    }
    if (offset < sent && ++restarts > limits::kImageUploadRestarts) {
      return std::unexpected(
          Failed({ErrorCode::kUnavailable, "the server forgot what was sent again and again"}));
    }
    Show("sent", offset);
    auto bytes = ReadAt(offset);
    if (!bytes) return std::unexpected(Failed(bytes.error()));
    sent = std::min(offset + static_cast<std::int64_t>(bytes->size()), size_);
    bytes->resize(static_cast<std::size_t>(sent - offset));
    result = Put(digest, offset, *std::move(bytes));
  }
  if (!result.IsSuccess()) {
    run_.messages.EndLive();
    return std::unexpected(ReportFailure(run_, "image file " + name_, result));
  }
  run_.messages.EndLive();
  run_.messages.Say(fmt::format("{}: {} MiB {}", name_, Mib(size_),
                                sent == 0 ? "are in the store already" : "sent"));
  return {};
}

client::CallResult Upload::Put(const Digest& digest, std::int64_t offset, std::string bytes) const {
  client::ApiRequest request;
  request.method = "PUT";
  request.path = "/v1/image-files/" + ToHex(digest);
  request.query = {{"size", std::to_string(size_)}, {"offset", std::to_string(offset)}};
  if (!bytes.empty()) {
    request.body = std::move(bytes);
    request.content_type = "application/octet-stream";
  }
  request.budget = run_.globals.timeout.value_or(limits::kClientBudget);
  return run_.client.Call(request, run_.world.stop);
}

// Once, and in a moment: the person waits for the command's end. The server drops it by itself, if
// later.
void Upload::Abandon(const Digest& digest) const {
  client::ApiRequest request;
  request.method = "DELETE";
  request.path = "/v1/image-files/" + ToHex(digest);
  request.budget = limits::kClientConnect;
  (void)run_.client.Call(request, std::stop_token());
}

void Upload::Show(std::string_view what, std::int64_t done) {
  const Instant now = run_.world.clock.Monotonic();
  if (!run_.messages.HasLive() || now - shown_ < limits::kClientPollFast) return;
  shown_ = now;
  run_.messages.Live(fmt::format("{}: {} of {} MiB {} ({} %)", name_, Mib(done), Mib(size_), what,
                                 done * 100 / size_));
}

ExitCode Upload::Failed(const Error& error) const {
  run_.messages.EndLive();
  run_.messages.Say("error: image add: " + error.detail);
  return ExitCode::kFailed;
}

}  // namespace

std::expected<Digest, ExitCode> UploadFile(const Invocation& run, const std::string& path) {
  return Upload(run, path).Run();
}

}  // namespace vmonce::app
