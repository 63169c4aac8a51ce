#include "app/sim_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/system.h"
#include "sim/campaign.h"
#include "sim/marks.h"

namespace vmonce::app {
namespace {

// The end of a story that is shown by itself; --trace tells all of it.
constexpr std::size_t kLinesShown = 60;
constexpr std::size_t kLinesTraced = 1'000'000;

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Range> ParseRange(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto first = ParseNumber(text.substr(0, dots));
  const auto last = ParseNumber(text.substr(dots + 2));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

std::optional<sim::FaultChoice> ParseChoice(std::string_view text) {
  if (text == "swarm") return sim::FaultChoice::kSwarm;
  if (text == "all") return sim::FaultChoice::kAll;
  if (text == "none") return sim::FaultChoice::kNone;
  return std::nullopt;
}

// As it is typed to see the same world again.
std::string CommandFor(const sim::WorldOptions& world, const SimFlags& flags) {
  std::string command = fmt::format("vmonce sim --seed {} --trace", world.seed);
  if (flags.faults != "swarm") command += " --faults " + flags.faults;
  if (flags.replicas) command += fmt::format(" --replicas {}", *flags.replicas);
  if (!flags.mutant.empty()) command += " --mutant " + flags.mutant;
  return command;
}

std::string Describe(const sim::WorldReport& report) {
  return fmt::format("{} replicas, {} hosts, {} clients with {} requests each", report.replicas,
                     report.hosts, report.clients, report.requests);
}

class SimRun {
 public:
  SimRun(const SimFlags& flags, sim::WorldOptions world, Terminal& terminal)
      : flags_(flags), world_(std::move(world)), terminal_(terminal), clock_(NewSystemClock()) {}

  ExitCode One();
  ExitCode Many(const Range& range);

 private:
  double Seconds() const {
    return std::chrono::duration<double>(clock_->Monotonic() - began_).count();
  }
  bool Progress(const sim::Tally& tally, std::uint64_t wanted);
  void TellTally(const sim::Tally& tally);
  ExitCode TellFailure(const sim::Failure& failure);
  ExitCode Fail(const Error& error) {
    terminal_.Err("error: " + error.detail + "\n");
    return ExitCode::kFailed;
  }

  const SimFlags& flags_;
  const sim::WorldOptions world_;
  Terminal& terminal_;
  const std::unique_ptr<Clock> clock_;
  const Instant began_ = clock_->Monotonic();
  Instant told_ = began_;
};

ExitCode SimRun::One() {
  sim::WorldOptions world = world_;
  world.seed = *flags_.seed;
  world.story_lines = flags_.is_traced ? kLinesTraced : kLinesShown;
  const auto report = sim::RunApart(world);
  if (!report) return Fail(report.error());
  if (flags_.is_traced || !report->invariant.empty()) {
    for (const std::string& line : report->story) terminal_.Out(line + "\n");
  }
  terminal_.Out(fmt::format("seed {}: {}; {} turns, trace hash {:016x}\n", world.seed,
                            Describe(*report), report->turns, report->hash));
  if (report->invariant.empty()) {
    terminal_.Out("no invariant is broken\n");
    return ExitCode::kDone;
  }
  terminal_.Out(fmt::format("broken: {}: {}\n", report->invariant, report->breach));
  return ExitCode::kFailed;
}

bool SimRun::Progress(const sim::Tally& tally, std::uint64_t wanted) {
  if (flags_.minutes > 0 && Seconds() > 60.0 * flags_.minutes) return false;
  const Instant now = clock_->Monotonic();
  if (now - told_ < std::chrono::seconds(5)) return true;
  told_ = now;
  std::uint64_t faults = 0;
  for (const std::uint64_t count : tally.fired) faults += count;
  terminal_.Err(fmt::format("{:>9} of {} worlds  {:>6.0f}/s  {} faults  {} rare marks\n",
                            tally.worlds, wanted, static_cast<double>(tally.worlds) / Seconds(),
                            faults, sim::RareMarksReached(tally.marks)));
  return true;
}

void SimRun::TellTally(const sim::Tally& tally) {
  terminal_.Out(fmt::format("{} worlds in {:.0f} s, {:.0f} a second, {} turns each\n", tally.worlds,
                            Seconds(), static_cast<double>(tally.worlds) / Seconds(),
                            tally.turns / std::max<std::uint64_t>(tally.worlds, 1)));
  std::string line;
  for (std::size_t i = 0; i < sim::kFaultKinds; ++i) {
    line += fmt::format("{} {}  ", ToString(static_cast<sim::FaultKind>(i)), tally.fired[i]);
  }
  terminal_.Out("faults fired: " + line + "\n");
  line.clear();
  for (const auto& [name, count] : tally.marks) line += fmt::format("{} {}  ", name, count);
  terminal_.Out("marks: " + line + "\n");
}

ExitCode SimRun::TellFailure(const sim::Failure& failure) {
  sim::WorldOptions world = world_;
  world.seed = failure.seed;
  terminal_.Out(
      fmt::format("BROKEN in seed {}: {}: {}\n", failure.seed, failure.invariant, failure.breach));
  if (flags_.is_quick) return ExitCode::kFailed;
  const auto shrunk = sim::Shrink(world, failure.invariant);
  if (shrunk) world = *shrunk;
  world.story_lines = kLinesShown;
  const auto report = sim::RunApart(world);
  if (!report) return Fail(report.error());
  std::string without;
  for (const sim::FaultKind kind : world.without) without += fmt::format(" {}", ToString(kind));
  terminal_.Out(fmt::format("the smallest world that breaks it: {}{}{}\n", Describe(*report),
                            without.empty() ? "" : ", without", without));
  for (const std::string& line : report->story) terminal_.Out(line + "\n");
  terminal_.Out("the whole story of the seed: " + CommandFor(world, flags_) + "\n");
  return ExitCode::kFailed;
}

ExitCode SimRun::Many(const Range& range) {
  sim::Campaign campaign;
  campaign.first = range.first;
  campaign.last = range.last;
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  campaign.jobs = flags_.jobs > 0 ? flags_.jobs : static_cast<int>(std::max(1L, processors));
  campaign.world = world_;
  const std::uint64_t wanted = range.last - range.first + 1;
  campaign.go_on = [&](const sim::Tally& tally) { return Progress(tally, wanted); };
  const auto report = sim::Search(campaign);
  if (!report) return Fail(report.error());
  TellTally(report->tally);
  if (!report->failures.empty()) return TellFailure(report->failures.front());
  const std::vector<std::string> unreached = sim::Unreached(report->tally);
  if (!unreached.empty()) {
    std::string names;
    for (const std::string& name : unreached) names += " " + name;
    terminal_.Out("never reached:" + names + "\n");
    if (flags_.must_reach_all) return ExitCode::kFailed;
  }
  terminal_.Out("no invariant is broken\n");
  return ExitCode::kDone;
}

}  // namespace

ExitCode RunSim(const SimFlags& flags, Terminal& terminal) {
  const auto refuse = [&terminal](const std::string& text) {
    terminal.Err("error: " + text + "\n");
    return ExitCode::kUsage;
  };
  sim::WorldOptions world;
  const auto choice = ParseChoice(flags.faults);
  if (!choice) return refuse("--faults is swarm, all or none");
  world.faults = *choice;
  if (flags.replicas && (*flags.replicas < 1 || *flags.replicas > 5)) {
    return refuse("--replicas is 1 to 5");
  }
  world.replicas = flags.replicas;
  if (!flags.mutant.empty()) {
    world.mutant = sim::ParseMutant(flags.mutant);
    if (!world.mutant) {
      return refuse("there is no mutant " + flags.mutant + "; docs/simulation.md names them");
    }
  }
  SimRun run(flags, world, terminal);
  if (flags.seed) return run.One();
  const auto range = ParseRange(flags.seeds);
  if (!range) return refuse("--seeds is FIRST..LAST, such as 1..50000");
  return run.Many(*range);
}

}  // namespace vmonce::app
