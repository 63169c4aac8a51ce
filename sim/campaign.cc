#include "sim/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"
#include "sim/workshop.h"

namespace vmonce::sim {
namespace {

// Worlds of one process: some seconds of work, and memory of killed replicas stays below some
// hundred MiB.
constexpr std::uint64_t kWorldsOfAProcess = 250;
constexpr int kPollMs = 500;

// A child tells its parent in lines of a word and its arguments. A story's line ends the same way.
class Teller {
 public:
  explicit Teller(int fd) : fd_(fd) {}
  void Line(const std::string& line) { text_ += line + "\n"; }
  // All that was said until here; a parent that is gone is no matter.
  void Flush() {
    std::size_t at = 0;
    while (at < text_.size()) {
      const ssize_t wrote = write(fd_, text_.data() + at, text_.size() - at);
      if (wrote <= 0) return;
      at += static_cast<std::size_t>(wrote);
    }
    text_.clear();
  }

 private:
  const int fd_;
  std::string text_;
};

void TellReport(Teller& teller, const WorldReport& report) {
  teller.Line(fmt::format("hash {}", report.hash));
  teller.Line(fmt::format("turns {}", report.turns));
  teller.Line(fmt::format("shape {} {} {} {}", report.replicas, report.hosts, report.clients,
                          report.requests));
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (report.fired[i] > 0) teller.Line(fmt::format("fired {} {}", i, report.fired[i]));
  }
  for (const auto& [name, count] : report.marks) {
    teller.Line(fmt::format("mark {} {}", count, name));
  }
  for (const std::string& line : report.story) teller.Line("story " + line);
  if (!report.invariant.empty()) {
    teller.Line("broken " + report.invariant);
    teller.Line("breach " + report.breach);
  }
  teller.Line("done");
  teller.Flush();
}

// What a child told, line by line.
class Listener {
 public:
  // A report that is complete.
  std::function<void(std::uint64_t seed, WorldReport report)> on_report;

  void Hear(std::string_view bytes) {
    rest_ += bytes;
    std::size_t begin = 0;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos;
         end = rest_.find('\n', begin)) {
      HearLine(std::string_view(rest_).substr(begin, end - begin));
      begin = end + 1;
    }
    rest_.erase(0, begin);
  }
  // The world that was begun and not told to its end; absent when there is none.
  std::optional<std::uint64_t> Unfinished() const { return seed_; }

 private:
  static std::vector<std::uint64_t> Numbers(std::string_view text, std::size_t most) {
    std::vector<std::uint64_t> numbers;
    while (!text.empty() && numbers.size() < most) {
      std::uint64_t number = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
      if (parsed.ec != std::errc()) break;
      numbers.push_back(number);
      text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
      if (!text.empty()) text.remove_prefix(1);
    }
    numbers.resize(most);
    return numbers;
  }

  void HearLine(std::string_view line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, space);
    const std::string_view rest = space < line.size() ? line.substr(space + 1) : "";
    if (word == "world") {
      seed_ = Numbers(rest, 1)[0];
      report_ = {};
    } else if (word == "hash") {
      report_.hash = Numbers(rest, 1)[0];
    } else if (word == "turns") {
      report_.turns = Numbers(rest, 1)[0];
    } else if (word == "shape") {
      const auto numbers = Numbers(rest, 4);
      report_.replicas = static_cast<int>(numbers[0]);
      report_.hosts = static_cast<int>(numbers[1]);
      report_.clients = static_cast<int>(numbers[2]);
      report_.requests = static_cast<int>(numbers[3]);
    } else if (word == "fired") {
      const auto numbers = Numbers(rest, 2);
      if (numbers[0] < kFaultKinds) report_.fired[numbers[0]] = numbers[1];
    } else if (word == "mark") {
      const std::size_t name = std::min(rest.find(' '), rest.size());
      report_.marks[std::string(rest.substr(std::min(name + 1, rest.size())))] =
          Numbers(rest, 1)[0];
    } else if (word == "story") {
      report_.story.emplace_back(rest);
    } else if (word == "broken") {
      report_.invariant = rest;
    } else if (word == "breach") {
      report_.breach = rest;
    } else if (word == "done" && seed_) {
      const std::uint64_t seed = *seed_;
      seed_.reset();
      on_report(seed, std::move(report_));
    }
  }

  std::string rest_;
  std::optional<std::uint64_t> seed_;
  WorldReport report_;
};

[[noreturn]] void RunChild(int fd, WorldOptions options, std::uint64_t first, std::uint64_t last) {
  Workshop workshop;
  Teller teller(fd);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    teller.Line(fmt::format("world {}", seed));
    teller.Flush();
    options.seed = seed;
    TellReport(teller, RunWorld(options, workshop));
  }
  // Nothing to unwind: what killed processes left is not freed one by one.
  _exit(0);
}

struct Child {
  pid_t pid = -1;
  UniqueFd out;
  std::uint64_t last = 0;
  Listener listener;
};

Result<Child> Begin(const WorldOptions& options, std::uint64_t first, std::uint64_t last) {
  int ends[2];
  if (pipe(ends) != 0) return Fail(ErrorCode::kUnavailable, "no pipe can be made");
  Child child;
  child.out = UniqueFd(ends[0]);
  UniqueFd in(ends[1]);
  child.last = last;
  child.pid = fork();
  if (child.pid < 0) return Fail(ErrorCode::kUnavailable, "no process can be made");
  if (child.pid == 0) {
    child.out.Close();
    RunChild(in.get(), options, first, last);
  }
  return child;
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("status {}", WEXITSTATUS(status));
}

// Reads what is there. False: it has ended.
bool Listen(Child& child) {
  char buffer[64 << 10];
  const ssize_t got = read(child.out.get(), buffer, sizeof(buffer));
  if (got <= 0) return false;
  child.listener.Hear(std::string_view(buffer, static_cast<std::size_t>(got)));
  return true;
}

// The world that its process did not survive.
std::optional<Failure> Bury(Child& child) {
  int status = 0;
  waitpid(child.pid, &status, 0);
  const auto seed = child.listener.Unfinished();
  if (!seed) return std::nullopt;
  return Failure{*seed, "no_crash", "the process ended with " + HowItEnded(status)};
}

class Searcher {
 public:
  explicit Searcher(const Campaign& campaign) : campaign_(campaign), next_(campaign.first) {}

  Result<CampaignReport> Run() {
    while (true) {
      while (!is_over_ && next_ <= campaign_.last &&
             static_cast<int>(children_.size()) < campaign_.jobs) {
        const std::uint64_t last = std::min(campaign_.last, next_ + kWorldsOfAProcess - 1);
        if (const Status begun = Start(next_, last); !begun) return std::unexpected(begun.error());
        next_ = last + 1;
      }
      if (children_.empty()) return std::move(report_);
      Wait();
      if (!campaign_.go_on(report_.tally)) is_over_ = true;
      if (report_.failures.size() >= campaign_.most_failures) is_over_ = true;
      if (is_over_) EndAll();
    }
  }

 private:
  Status Start(std::uint64_t first, std::uint64_t last) {
    auto begun = Begin(campaign_.world, first, last);
    if (!begun) return std::unexpected(begun.error());
    auto child = std::make_unique<Child>(std::move(*begun));
    child->listener.on_report = [this](std::uint64_t seed, const WorldReport& report) {
      report_.tally.Add(report);
      if (!report.invariant.empty()) {
        report_.failures.push_back({seed, report.invariant, report.breach});
      }
    };
    children_.push_back(std::move(child));
    return {};
  }

  void Wait() {
    std::vector<pollfd> polled;
    for (const auto& child : children_) polled.push_back({child->out.get(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), kPollMs) <= 0) return;
    for (std::size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0 || Listen(*children_[i])) continue;
      Child& child = *children_[i];
      if (auto failure = Bury(child)) {
        const std::uint64_t after = failure->seed + 1;
        const std::uint64_t last = child.last;
        report_.failures.push_back(std::move(*failure));
        children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
        // Those after it were not run. When none can be begun the next turn tells.
        if (after <= last && !is_over_) (void)Start(after, last);
        continue;
      }
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void EndAll() {
    for (const auto& child : children_) {
      kill(child->pid, SIGKILL);
      waitpid(child->pid, nullptr, 0);
    }
    children_.clear();
    next_ = campaign_.last + 1;
  }

  const Campaign& campaign_;
  std::uint64_t next_;
  bool is_over_ = false;
  std::vector<std::unique_ptr<Child>> children_;
  CampaignReport report_;
};

// Whether the smaller world still breaks it; kept when it does.
Result<bool> TrySmaller(WorldOptions& broken, const WorldOptions& smaller,
                        const std::string& invariant) {
  auto report = RunApart(smaller);
  if (!report) return std::unexpected(report.error());
  if (report->invariant != invariant) return false;
  broken = smaller;
  return true;
}

}  // namespace

void Tally::Add(const WorldReport& report) {
  ++worlds;
  turns += report.turns;
  for (std::size_t i = 0; i < kFaultKinds; ++i) fired[i] += report.fired[i];
  for (const auto& [name, count] : report.marks) marks[name] += count;
}

Result<CampaignReport> Search(const Campaign& campaign) { return Searcher(campaign).Run(); }

Result<WorldReport> RunApart(const WorldOptions& options) {
  auto child = Begin(options, options.seed, options.seed);
  if (!child) return std::unexpected(child.error());
  std::optional<WorldReport> told;
  child->listener.on_report = [&told](std::uint64_t, WorldReport report) {
    told = std::move(report);
  };
  while (Listen(*child)) {
  }
  if (auto failure = Bury(*child)) {
    WorldReport report;
    report.invariant = failure->invariant;
    report.breach = failure->breach;
    return report;
  }
  if (!told) return Fail(ErrorCode::kInternal, "a world's process told nothing");
  return std::move(*told);
}

Result<WorldOptions> Shrink(WorldOptions broken, const std::string& invariant) {
  const auto first = RunApart(broken);
  if (!first) return std::unexpected(first.error());
  const auto attempt = [&](auto change) -> Status {
    WorldOptions smaller = broken;
    change(smaller);
    const auto is_kept = TrySmaller(broken, smaller, invariant);
    if (!is_kept) return std::unexpected(is_kept.error());
    return {};
  };
  for (int fewer = 1; fewer < first->clients; ++fewer) {
    if (auto tried = attempt([&](WorldOptions& w) { w.clients = first->clients - fewer; });
        !tried) {
      return std::unexpected(tried.error());
    }
  }
  for (int fewer = 1; fewer < first->requests; ++fewer) {
    const auto tried = attempt([&](WorldOptions& w) { w.requests = first->requests - fewer; });
    if (!tried) return std::unexpected(tried.error());
  }
  for (const int hosts : {2, 1}) {
    const auto tried = attempt([&](WorldOptions& w) { w.hosts = std::min(hosts, first->hosts); });
    if (!tried) return std::unexpected(tried.error());
  }
  for (const int replicas : {2, 1}) {
    const auto tried =
        attempt([&](WorldOptions& w) { w.replicas = std::min(replicas, first->replicas); });
    if (!tried) return std::unexpected(tried.error());
  }
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (first->fired[i] == 0 && first->invariant != "no_crash") continue;
    const auto tried =
        attempt([&](WorldOptions& w) { w.without.push_back(static_cast<FaultKind>(i)); });
    if (!tried) return std::unexpected(tried.error());
  }
  return broken;
}

}  // namespace vmonce::sim
