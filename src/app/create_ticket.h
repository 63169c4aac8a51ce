// The intent behind one run of `create`: a new one, the unfinished one of an earlier run of the
// same command, or the one that --resume names.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/invocation.h"
#include "client/intent_file.h"

namespace vmonce::app {

struct Ticket {
  client::Intent intent;
  // nullptr: the intent could not be kept, and the person who chose the key keeps it.
  std::unique_ptr<client::HeldIntent> held;
  bool is_continued = false;  // An earlier run has begun it.

  // The command that goes on with it.
  std::string ResumeHint(const Invocation& run) const;
  // The end is known: nothing needs to be kept.
  void Finish(const Invocation& run);
};

// $XDG_STATE_HOME/vmonce/intents, or ~/.local/state/vmonce/intents; nothing without a home.
std::optional<std::string> IntentDirectory(const Environ& environment);

// For `body` (canonical) under `key`, or without a key. On disk when it returns. On failure
// everything has been said.
std::expected<Ticket, ExitCode> TakeTicket(const Invocation& run, const std::string& body,
                                           const std::optional<std::string>& key);

// The unfinished intent of `key`; without a key the only one there is.
std::expected<Ticket, ExitCode> ResumeTicket(const Invocation& run,
                                             const std::optional<std::string>& key);

}  // namespace vmonce::app
