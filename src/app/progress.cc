#include "app/progress.h"

#include <fmt/format.h>

#include <map>

#include "app/json_text.h"

namespace vmonce::app {
namespace {

using boost::json::value;

// A create's steps in the order of the API's contract; the last one is what the person waits for.
constexpr std::string_view kCreateSteps[] = {"place", "disk", "seed", "define", "start", "publish"};

// The word for a step that a person reads: what publishing means is that the VM is ready.
std::string_view WordOf(std::string_view step) { return step == "publish" ? "ready" : step; }

std::string StateOf(const value& item) {
  const std::string phase = TextAt(item, "phase");
  if (phase == "done") return "ready";
  if (phase == "forward") {
    const std::string step = TextAt(item, "step_name");
    return step.empty() ? "waiting" : std::string(WordOf(step));
  }
  return phase;
}

}  // namespace

std::string Elapsed(Milliseconds duration) {
  const auto ms = duration.count();
  if (ms < 120'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1'000);
  return fmt::format("{} min {} s", ms / 60'000, ms % 60'000 / 1'000);
}

Milliseconds Progress::SinceBegin() {
  return std::chrono::duration_cast<Milliseconds>(clock_.Monotonic() - begin_);
}

void Progress::Update(const value& operation) {
  const std::string state = TextAt(operation, "state");
  if (state == "verifying") {
    Note("verifying: it is not known what the last effect did; the server is looking",
         last_state_note_);
  }
  if (IsTrueAt(operation, "stuck")) {
    Note("stuck: this has failed many times and needs a person; the server keeps trying",
         last_state_note_);
  }
  const auto items = ListAt(operation, "items");
  if (items.size() == 1) UpdateOne(operation, items[0]);
  if (items.size() > 1) UpdateMany(items);
  CatchUp();
}

void Progress::CatchUp() {
  if (!is_catching_up_) return;
  is_catching_up_ = false;
  std::string steps;
  for (const auto& [step, when] : reached_) steps += (steps.empty() ? "" : ", ") + step;
  // An operation that has ended needs no list: its end is told by whoever follows it.
  if (!steps.empty() && !reached_.back().first.starts_with("ready") &&
      reached_.back().first != "done") {
    messages_.Say(fmt::format("[{:>8}] done before: {}", Elapsed(SinceBegin()), steps));
  }
}

void Progress::UpdateOne(const value& operation, const value& item) {
  const std::string phase = TextAt(item, "phase");
  const std::string step = TextAt(item, "step_name");
  if (phase == "undoing") Note(fmt::format("undoing {}", step), last_item_note_);
  if (const auto failures = NumberAt(item, "failures", 0); failures > 0 && phase == "forward") {
    Note(fmt::format("{}: try {} changed nothing; the server tries again", step, failures),
         last_item_note_);
  }
  if (TextAt(operation, "kind") != "create") {
    const std::string shown = phase == "done" ? "done" : step;
    if (!HasReached(shown)) Reach(shown);
    Draw("");
    return;
  }
  const auto* here = std::ranges::find(kCreateSteps, std::string_view(step));
  if (phase == "done") here = std::end(kCreateSteps);
  if (phase != "done" && (phase != "forward" || here == std::end(kCreateSteps))) {
    Draw(phase);
    return;
  }
  // Steps pass faster than they are asked for, so all before this one are done now.
  for (const auto* done = std::begin(kCreateSteps); done != here; ++done) {
    if (!HasReached(WordOf(*done))) Reach(WordOf(*done));
  }
  Draw(here == std::end(kCreateSteps) ? "" : WordOf(*here));
}

void Progress::UpdateMany(const std::vector<value>& items) {
  std::map<std::string, int> counts;
  for (const value& item : items) ++counts[StateOf(item)];
  std::string line = fmt::format("{} VMs:", items.size());
  const char* separator = " ";
  for (const auto& [state, count] : counts) {
    line += fmt::format("{}{} {}", separator, count, state);
    separator = ", ";
  }
  if (messages_.HasLive()) {
    messages_.Live(fmt::format("  {}  ({})", line, Elapsed(SinceBegin())));
  } else {
    Note(line, last_plain_);
  }
}

bool Progress::HasReached(std::string_view step) const {
  return std::ranges::any_of(reached_, [step](const auto& entry) { return entry.first == step; });
}

void Progress::Reach(std::string_view step) {
  if (step.empty()) return;
  reached_.emplace_back(step, is_catching_up_ ? "before" : Elapsed(SinceBegin()));
  if (!messages_.HasLive() && !is_catching_up_) Note(std::string(step), last_plain_);
}

void Progress::Note(std::string text, std::string& last) {
  if (text == last) return;
  messages_.Say(fmt::format("[{:>8}] {}", Elapsed(SinceBegin()), text));
  last = std::move(text);
}

void Progress::Draw(std::string_view current) {
  if (!messages_.HasLive()) return;
  std::string line;
  for (const auto& [step, when] : reached_) {
    if (when == "before") continue;
    line += fmt::format("{}{} {}", line.empty() ? "  " : " -> ", step, when);
  }
  if (!current.empty()) {
    line +=
        fmt::format("{}{} ... {}", line.empty() ? "  " : " -> ", current, Elapsed(SinceBegin()));
  }
  messages_.Live(line);
}

}  // namespace vmonce::app
