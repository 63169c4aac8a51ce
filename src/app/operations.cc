#include <fmt/format.h>

#include "app/commands.h"
#include "app/json_text.h"
#include "app/lookup.h"
#include "client/url.h"

namespace vmonce::app {
namespace {

struct OperationFlags {
  std::string id, state, vm, key;
};

constexpr Column kOperationColumns[] = {
    {"ID", "id"},   {"KIND", "kind"},   {"STATE", "state"},          {"ATTEMPT", "attempt"},
    {"VMS", "vms"}, {"STUCK", "stuck"}, {"ACCEPTED", "accepted_at"},
};
constexpr Column kTimelineColumns[] = {
    {"AT", "at"},       {"REPLICA", "replica"}, {"ATTEMPT", "attempt"},
    {"INDEX", "index"}, {"EVENT", "event"},     {"DETAIL", "detail"},
};

std::string PathOf(const OperationFlags& flags) {
  return "/v1/operations/" + client::PercentEncode(flags.id);
}

ExitCode RunList(const Invocation& run, const OperationFlags& flags) {
  Query query;
  if (!flags.key.empty()) query.emplace_back("idempotency_key", flags.key);
  if (!flags.state.empty()) query.emplace_back("state", flags.state);
  if (!flags.vm.empty()) {
    const auto vm = LookUpVm(run, flags.vm);
    if (!vm) return vm.error();
    query.emplace_back("vm", TextAt(*vm, "id"));
  }
  const Listing listing = GetAll(run, "/v1/operations", std::move(query));
  if (listing.failure) return ReportFailure(run, "operations", *listing.failure);
  PrintItems(run.world.terminal, run.globals.format, listing.items, kOperationColumns);
  return ExitCode::kDone;
}

ExitCode RunGet(const Invocation& run, const OperationFlags& flags) {
  const auto result = Get(run, PathOf(flags));
  if (!result.IsSuccess()) return ReportFailure(run, "operation " + flags.id, result);
  PrintOne(run.world.terminal, run.globals.format, result.json);
  return ExitCode::kDone;
}

ExitCode RunTimeline(const Invocation& run, const OperationFlags& flags) {
  const auto result = Get(run, PathOf(flags) + "/timeline");
  if (!result.IsSuccess()) return ReportFailure(run, "operation " + flags.id, result);
  PrintItems(run.world.terminal, run.globals.format, ListAt(result.json, "items"),
             kTimelineColumns);
  return ExitCode::kDone;
}

ExitCode RunCancel(const Invocation& run, const OperationFlags& flags) {
  const auto result = Change(run, "POST", PathOf(flags) + "/cancel", NewKey(run.world));
  if (!result.IsSuccess()) return ReportFailure(run, "cancel of " + flags.id, result);
  run.messages.Say("cancel is accepted; follow it with: " + CommandHint(run, "wait " + flags.id));
  return ExitCode::kDone;
}

using Run = ExitCode (*)(const Invocation&, const OperationFlags&);

void AddOne(CLI::App& parent, ClientCommand& chosen, std::pair<const char*, const char*> words,
            Run body) {
  auto* command = parent.add_subcommand(words.first, words.second);
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<OperationFlags>();
  command->add_option("OPERATION", flags->id, "Id")->required();
  command->callback([&chosen, flags, body] {
    chosen = [flags, body](const Invocation& run) { return body(run, *flags); };
  });
}

void AddFilters(CLI::App& command, OperationFlags& flags) {
  command.add_option("--key", flags.key, "Only the operation of this idempotency key")
      ->type_name("KEY");
  command.add_option("--state", flags.state, "Only operations in this state")
      ->type_name("accepted|running|verifying|succeeded|failed|cancelled");
  command.add_option("--vm", flags.vm, "Only operations on this VM (name or id)")->type_name("VM");
}

}  // namespace

void AddOperations(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("operations", "List, show or cancel operations");
  command->require_subcommand(0, 1);
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<OperationFlags>();
  AddFilters(*command, *flags);
  auto* list = command->add_subcommand("list", "List operations (the default)");
  AddFilters(*list, *flags);
  // The callback of a command runs after those of its subcommands, which have chosen then.
  command->callback([&chosen, flags] {
    if (!chosen) chosen = [flags](const Invocation& run) { return RunList(run, *flags); };
  });
  AddOne(*command, chosen, {"get", "Show one operation"}, &RunGet);
  AddOne(*command, chosen, {"timeline", "Everything that happened to one, with times"},
         &RunTimeline);
  AddOne(*command, chosen, {"cancel", "Give up a create that has not ended"}, &RunCancel);
}

}  // namespace vmonce::app
