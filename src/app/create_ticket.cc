#include "app/create_ticket.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/rfc3339.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

using client::HeldIntent;
using client::Intent;
using client::IntentStore;

Ticket Continue(const Invocation& run, std::unique_ptr<HeldIntent> held) {
  Ticket ticket{held->intent(), std::move(held), true};
  run.messages.Say(fmt::format("going on with the unfinished create of {} under its key",
                               FormatRfc3339(ticket.intent.created)));
  return ticket;
}

ExitCode ReportInUse(const Invocation& run, const std::string& key) {
  run.messages.Say(
      fmt::format("error: another vmonce process is working on the create with key {}", key));
  run.messages.Say("  repair: wait for it, or end it and repeat this");
  return ExitCode::kFailed;
}

// The key stands for an unfinished intent here already.
std::expected<Ticket, ExitCode> TakeKnown(const Invocation& run, IntentStore& store,
                                          const Intent& asked) {
  auto held = store.Hold(asked.key);
  if (!held) return std::unexpected(ReportInUse(run, asked.key));
  const Intent& known = (*held)->intent();
  if (known.url == asked.url && known.body == asked.body) return Continue(run, std::move(*held));
  const auto a = ParseStrictJson(known.body);
  const auto b = ParseStrictJson(asked.body);
  run.messages.Say(
      fmt::format("error: the key {} stands for an unfinished create that asked for something else",
                  asked.key));
  if (known.url != asked.url) run.messages.Say("  of the server " + known.url);
  if (a && b && *a != *b) {
    run.messages.Say(
        fmt::format("  differs at: {}",
                    fmt::join(DifferingPointers(*a, *b, model::limits::kDifferingPointers), ", ")));
  }
  run.messages.Say(
      fmt::format("  repair: choose a new key; or finish it with `vmonce --url {} create "
                  "--resume {}`; or forget it by removing {}",
                  known.url, asked.key, (*held)->path()));
  return std::unexpected(ExitCode::kKeyReused);
}

std::expected<Ticket, ExitCode> TakeUnkept(const Invocation& run, const Intent& intent,
                                           bool is_chosen_key, std::string_view cause) {
  if (is_chosen_key) {
    run.messages.Say(fmt::format(
        "warning: this create cannot be kept for --resume: {}; its key is yours", cause));
    return Ticket{intent, nullptr, false};
  }
  run.messages.Say(fmt::format("error: the key could not be kept, so nothing was sent: {}", cause));
  run.messages.Say("  repair: set XDG_STATE_HOME to a directory you can write to, or choose --key");
  return std::unexpected(ExitCode::kFailed);
}

void ListIntents(const Invocation& run, const std::vector<Intent>& intents) {
  for (const Intent& intent : intents) {
    run.messages.Say(fmt::format("  vmonce --url {} create --resume {}   begun {}", intent.url,
                                 intent.key, FormatRfc3339(intent.created)));
  }
}

}  // namespace

std::string Ticket::ResumeHint(const Invocation& run) const {
  if (held == nullptr) return fmt::format("repeat this command with --key {}", intent.key);
  return CommandHint(run, "create --resume " + intent.key);
}

void Ticket::Finish(const Invocation& run) {
  if (held == nullptr) return;
  if (const Status finished = held->Finish(); !finished) {
    run.messages.Say("warning: " + finished.error().detail);
  }
}

std::optional<std::string> IntentDirectory(const Environ& environment) {
  const auto state = environment("XDG_STATE_HOME");
  // The XDG specification: a relative path is invalid and to be ignored.
  if (state && state->starts_with('/')) return *state + "/vmonce/intents";
  if (const auto home = environment("HOME")) return *home + "/.local/state/vmonce/intents";
  return std::nullopt;
}

std::expected<Ticket, ExitCode> TakeTicket(const Invocation& run, const std::string& body,
                                           const std::optional<std::string>& key) {
  const Intent intent{key.value_or(NewKey(run.world)), run.globals.url, body,
                      run.world.clock.Now()};
  const auto directory = IntentDirectory(run.world.environment);
  if (!directory)
    return TakeUnkept(run, intent, key.has_value(), "neither HOME nor XDG_STATE_HOME");
  IntentStore store(*directory, run.world.clock);
  if (!key) {
    auto same = store.HoldSame(intent.url, intent.body);
    if (!same) return TakeUnkept(run, intent, false, same.error().detail);
    if (*same != nullptr) return Continue(run, std::move(*same));
  }
  auto held = store.Save(intent);
  if (held) return Ticket{intent, std::move(*held), false};
  if (held.error().code == ErrorCode::kConflict) return TakeKnown(run, store, intent);
  return TakeUnkept(run, intent, key.has_value(), held.error().detail);
}

std::expected<Ticket, ExitCode> ResumeTicket(const Invocation& run,
                                             const std::optional<std::string>& key) {
  const auto directory = IntentDirectory(run.world.environment);
  IntentStore store(directory.value_or(""), run.world.clock);
  const auto intents = directory ? store.List() : Result<std::vector<Intent>>();
  if (!intents) {
    run.messages.Say("error: " + intents.error().detail);
    return std::unexpected(ExitCode::kFailed);
  }
  const auto chosen =
      std::ranges::find_if(*intents, [&key](const Intent& i) { return !key || i.key == *key; });
  if (chosen == intents->end()) {
    run.messages.Say(key ? fmt::format("error: no unfinished create has the key {}", *key)
                         : "error: there is no unfinished create");
    ListIntents(run, *intents);
    return std::unexpected(ExitCode::kNotFound);
  }
  if (!key && intents->size() > 1) {
    run.messages.Say("error: there are several unfinished creates; choose one:");
    ListIntents(run, *intents);
    return std::unexpected(ExitCode::kUsage);
  }
  // Nothing is sent to a server that this command line does not name.
  if (chosen->url != run.globals.url) {
    run.messages.Say("error: that create belongs to another server; go on with:");
    ListIntents(run, {*chosen});
    return std::unexpected(ExitCode::kUsage);
  }
  auto held = store.Hold(chosen->key);
  if (!held) return std::unexpected(ReportInUse(run, chosen->key));
  return Continue(run, std::move(*held));
}

}  // namespace vmonce::app
