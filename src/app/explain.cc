// explain KEY: what became of a key, as a story. It only reads: nothing is created by asking.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/json_text.h"
#include "app/progress.h"
#include "base/rfc3339.h"
#include "client/url.h"

namespace vmonce::app {
namespace {

using boost::json::value;

struct Story {
  value operation;
  std::vector<value> vms;
  std::vector<value> timeline;
};

std::optional<ExitCode> ReadStory(const Invocation& run, Story& story) {
  const auto timeline = Get(run, "/v1/operations/" + TextAt(story.operation, "id") + "/timeline");
  if (!timeline.IsSuccess()) return ReportFailure(run, "explain", timeline);
  story.timeline = ListAt(timeline.json, "items");
  for (const value& id : ListAt(story.operation, "vms")) {
    if (!id.is_string()) continue;
    const auto vm = Get(run, "/v1/vms/" + client::PercentEncode(std::string_view(id.get_string())));
    // One that has been forgotten is left out: the operation names its id all the same.
    if (vm.IsSuccess()) story.vms.push_back(vm.json);
  }
  return std::nullopt;
}

std::string Since(const std::optional<Time>& begin, const std::string& at) {
  const auto time = ParseRfc3339(at);
  if (!begin || !time) return at;
  return "+" + Elapsed(*time - *begin);
}

// One row an entry: when, which attempt, which VM of several, what, and which replica said so.
std::vector<std::vector<std::string>> TimelineRows(const Story& story,
                                                   const std::optional<Time>& begin) {
  const bool is_batch = ListAt(story.operation, "vms").size() > 1;
  std::vector<std::vector<std::string>> rows;
  for (const value& entry : story.timeline) {
    const auto index = NumberAt(entry, "index", -1);
    auto& row = rows.emplace_back();
    row.push_back("  " + Since(begin, TextAt(entry, "at")));
    row.push_back(fmt::format("attempt {}", NumberAt(entry, "attempt", 1)));
    if (is_batch) row.push_back(index < 0 ? "all" : fmt::format("VM {}", index));
    row.push_back(TextAt(entry, "event"));
    const std::string replica = TextAt(entry, "replica");
    row.push_back(replica.empty() ? "-" : replica);
    row.push_back(TextAt(entry, "detail"));
  }
  return rows;
}

void PrintStory(Terminal& terminal, const Story& story) {
  const value& operation = story.operation;
  const std::string accepted = TextAt(operation, "accepted_at");
  const auto begin = ParseRfc3339(accepted);
  std::string text = fmt::format("The key \"{}\" asked for a {}, accepted at {} as operation {}.\n",
                                 TextAt(operation, "idempotency_key_prefix"),
                                 TextAt(operation, "kind"), accepted, TextAt(operation, "id"));
  for (const value& vm : story.vms) {
    text += fmt::format("It stands for the VM {} ({}), which is {} now.\n", TextAt(vm, "name"),
                        TextAt(vm, "id"), TextAt(vm, "state"));
  }
  text += "What happened:\n";
  const auto duplicates = std::ranges::count_if(story.timeline, [](const value& entry) {
    return TextAt(entry, "event") == "duplicate_served";
  });
  terminal.Out(Printable(text));
  PrintRows(terminal, TimelineRows(story, begin));
  text.clear();
  const std::string finished = TextAt(operation, "finished_at");
  text += fmt::format("It is {}{}.\n", TextAt(operation, "state"),
                      finished.empty() ? "" : ", ended at " + Since(begin, finished));
  if (const std::string detail = TextAt(operation, "failure.detail"); !detail.empty()) {
    text += fmt::format("Cause: {} ({})\n", detail, TextAt(operation, "failure.code"));
  }
  if (duplicates > 0) {
    text += fmt::format("{} duplicate request{} got this same operation; none made another VM.\n",
                        duplicates, duplicates == 1 ? "" : "s");
  }
  terminal.Out(Printable(text));
}

ExitCode RunExplain(const Invocation& run, const std::string& key) {
  const Listing listing = GetAll(run, "/v1/operations", {{"idempotency_key", key}});
  if (listing.failure) return ReportFailure(run, "explain", *listing.failure);
  if (listing.items.empty()) {
    run.messages.Say("error: no request with this key has been accepted");
    run.messages.Say("  nothing was made with it, and sending it is safe");
    return ExitCode::kNotFound;
  }
  Story story{listing.items[0], {}, {}};
  if (const auto failed = ReadStory(run, story)) return *failed;
  if (run.globals.format == OutputFormat::kTable) {
    PrintStory(run.world.terminal, story);
    return ExitCode::kDone;
  }
  boost::json::object document;
  document["operation"] = story.operation;
  document["vms"] = boost::json::array(story.vms.begin(), story.vms.end());
  document["timeline"] = boost::json::array(story.timeline.begin(), story.timeline.end());
  if (run.globals.format == OutputFormat::kName) {
    PrintItems(run.world.terminal, run.globals.format, story.vms, kVmColumns);
  } else {
    PrintOne(run.world.terminal, run.globals.format, document);
  }
  return ExitCode::kDone;
}

}  // namespace

void AddExplain(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("explain", "Tell what became of an idempotency key");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto key = std::make_shared<std::string>();
  command->add_option("KEY", *key, "The idempotency key")->required();
  command->callback(
      [&chosen, key] { chosen = [key](const Invocation& run) { return RunExplain(run, *key); }; });
}

}  // namespace vmonce::app
