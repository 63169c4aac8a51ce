#include "client/intent_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/rfc3339.h"
#include "base/sha256.h"
#include "model/limits.h"

namespace vmonce::client {
namespace {

namespace fs = std::filesystem;
namespace limits = model::limits;

constexpr int kVersion = 1;
// A body, JSON escapes around it and the rest.
constexpr std::size_t kFileBytes = 3 * limits::kBodyBytes;

std::string Serialise(const Intent& intent) {
  boost::json::object file;
  file["version"] = kVersion;
  file["key"] = intent.key;
  file["url"] = intent.url;
  file["created_at"] = FormatRfc3339(intent.created);
  file["body"] = intent.body;
  return boost::json::serialize(file) + "\n";
}

std::string Text(const boost::json::object& file, std::string_view name) {
  const auto* value = file.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

Result<Intent> Parse(std::string_view text) {
  const auto value = ParseStrictJson(text);
  if (!value) return std::unexpected(value.error());
  if (!value->is_object()) return Fail(ErrorCode::kInvalid, "not an intent file");
  const auto& file = value->get_object();
  const auto* version = file.if_contains("version");
  if (version == nullptr || *version != kVersion) {
    return Fail(ErrorCode::kInvalid, "an intent file of another version of vmonce");
  }
  const auto created = ParseRfc3339(Text(file, "created_at"));
  Intent intent{Text(file, "key"), Text(file, "url"), Text(file, "body"), Time{}};
  if (!created || intent.key.empty() || intent.url.empty() || intent.body.empty()) {
    return Fail(ErrorCode::kInvalid, "an intent file with members missing");
  }
  intent.created = *created;
  return intent;
}

Result<Intent> Read(const std::string& path) {
  const auto text = ReadWholeFile(path, kFileBytes);
  if (!text) return std::unexpected(text.error());
  return Parse(*text);
}

bool IsIntentName(const std::string& name) {
  return !name.starts_with('.') && name.ends_with(".json");
}

// What a save left behind that was killed half-way. It holds a body, so it does not stay for ever.
void RemoveIfStale(const fs::path& path, Time now) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return;
  const Time written{std::chrono::seconds(status.st_mtime)};
  if (now - written > limits::kClientStaleTemporary) unlink(path.c_str());
}

}  // namespace

HeldIntent::HeldIntent(Intent intent, std::string path, UniqueFd lock)
    : intent_(std::move(intent)), path_(std::move(path)), lock_(std::move(lock)) {}

Status HeldIntent::Finish() {
  if (unlink(path_.c_str()) != 0 && errno != ENOENT) {
    return std::unexpected(ErrnoError(errno, "removing " + path_));
  }
  return {};
}

IntentStore::IntentStore(std::string directory, Clock& clock)
    : directory_(std::move(directory)), clock_(clock) {}

Result<std::unique_ptr<HeldIntent>> IntentStore::Save(const Intent& intent) {
  if (const Status made = MakeDirectory(); !made) return std::unexpected(made.error());
  // Born locked: a second identical command must never see it as one that nobody works on.
  const std::string path = PathOf(intent.key);
  Result<UniqueFd> written = CreateFileLocked(path, Serialise(intent), 0600);
  // kUnknown means that the file stands and only a power cut could take it back. Going on without
  // that certainty would break the promise of this file.
  if (!written) return Context("keeping the key", written.error());
  return std::make_unique<HeldIntent>(intent, path, std::move(*written));
}

Result<std::unique_ptr<HeldIntent>> IntentStore::Hold(std::string_view key) {
  const std::string path = PathOf(key);
  UniqueFd lock(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!lock.IsOpen()) return std::unexpected(ErrnoError(errno, path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorCode::kConflict, "another vmonce process is working on this create");
  }
  struct stat status{};
  if (fstat(lock.get(), &status) != 0 || status.st_nlink == 0) {
    return Fail(ErrorCode::kNotFound, "this create has just been finished by another process");
  }
  auto intent = Read(path);
  if (!intent) return Context(path, intent.error());
  return std::make_unique<HeldIntent>(std::move(*intent), path, std::move(lock));
}

Result<std::vector<Intent>> IntentStore::List() {
  std::vector<Intent> intents;
  std::error_code failure;
  fs::directory_iterator entries(directory_, failure);
  if (failure == std::errc::no_such_file_or_directory) return intents;
  if (failure) return std::unexpected(ErrnoError(failure.value(), directory_));
  for (; entries != fs::directory_iterator(); entries.increment(failure)) {
    if (failure || intents.size() >= limits::kClientIntents) break;
    const std::string name = entries->path().filename().string();
    if (name.ends_with(".tmp")) RemoveIfStale(entries->path(), clock_.Now());
    if (!IsIntentName(name)) continue;
    if (auto intent = Read(entries->path().string())) intents.push_back(std::move(*intent));
  }
  std::ranges::sort(intents, {}, [](const Intent& i) { return std::tie(i.created, i.key); });
  return intents;
}

Result<std::unique_ptr<HeldIntent>> IntentStore::HoldSame(std::string_view url,
                                                          std::string_view body) {
  const auto intents = List();
  if (!intents) return std::unexpected(intents.error());
  for (const Intent& intent : *intents) {
    if (intent.url != url || intent.body != body) continue;
    if (clock_.Now() - intent.created > limits::kClientIntentReuse) continue;
    // One that somebody holds, or that was finished this moment, is not unfinished.
    if (auto held = Hold(intent.key)) return held;
  }
  return std::unique_ptr<HeldIntent>();
}

std::string IntentStore::PathOf(std::string_view key) const {
  // Keys are any printable text; their hash fits any file system.
  return fmt::format("{}/{}.json", directory_, ToHex(Sha256(key)).substr(0, 40));
}

Status IntentStore::MakeDirectory() const {
  std::error_code failure;
  fs::create_directories(directory_, failure);
  if (failure) {
    return std::unexpected(ErrnoError(failure.value(), "making the directory " + directory_));
  }
  if (chmod(directory_.c_str(), 0700) != 0) {
    return std::unexpected(ErrnoError(errno, "closing the directory " + directory_));
  }
  return {};
}

}  // namespace vmonce::client
