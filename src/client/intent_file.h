// The create that a person asked for, kept in a file from before the first send until its end is
// known. Whatever happens to this process, the key is not lost: the same command, or --resume, goes
// on with it.
//
// The body may hold secrets (user data), so directory and files are the user's alone (0700, 0600),
// and a finished intent leaves nothing behind.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace vmonce::client {

struct Intent {
  std::string key;
  std::string url;   // Of NormaliseBaseUrl().
  std::string body;  // Canonical JSON: two spellings of one request are one intent.
  Time created{};

  bool operator==(const Intent&) const = default;
};

// One intent, held by this process as long as the object lives. No two processes hold one intent: a
// second identical command that runs at the same time means a second machine, so it must not share
// the key of the first. When the process dies, the hold ends and the file stays.
class HeldIntent final {
 public:
  HeldIntent(Intent intent, std::string path, UniqueFd lock);
  HeldIntent(const HeldIntent&) = delete;
  HeldIntent& operator=(const HeldIntent&) = delete;

  const Intent& intent() const { return intent_; }
  const std::string& path() const { return path_; }

  // The end is known: removes the file.
  Status Finish();

 private:
  const Intent intent_;
  const std::string path_;
  const UniqueFd lock_;
};

// `clock` outlives it. Nothing is touched before the first call.
class IntentStore final {
 public:
  IntentStore(std::string directory, Clock& clock);

  // On disk when it returns, under a power cut too. kConflict: there is an intent of that key.
  Result<std::unique_ptr<HeldIntent>> Save(const Intent& intent);

  // kNotFound: no intent has that key. kConflict: another living process holds it.
  Result<std::unique_ptr<HeldIntent>> Hold(std::string_view key);

  // Oldest first; an unreadable file is left out. No directory yet is an empty list.
  Result<std::vector<Intent>> List();

  // An unfinished intent of the same URL and body that is younger than limits::kClientIntentReuse
  // and that nobody holds; nullptr when there is none.
  Result<std::unique_ptr<HeldIntent>> HoldSame(std::string_view url, std::string_view body);

 private:
  std::string PathOf(std::string_view key) const;
  Status MakeDirectory() const;

  const std::string directory_;
  Clock& clock_;
};

}  // namespace vmonce::client
