// What is measured over HTTP, from the outside.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>

#include "base/check.h"
#include "base/system.h"
#include "bench/commands.h"
#include "bench/load.h"
#include "bench/samples.h"

namespace vmonce::bench {
namespace {

constexpr Milliseconds kReadyEvery{50};
constexpr double kReadyWithin = 300;

// Numbers that look random, the same for the same seed: keys that share prefixes would flatter the
// indexes. SplitMix64.
std::uint64_t Scatter(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// The creates of one seed: the same index gives the same request.
class Creates {
 public:
  Creates(const Arguments& arguments)
      : seed_(Scatter(static_cast<std::uint64_t>(arguments.Number("seed")))),
        image_(arguments.Text("image")),
        wait_(arguments.Number("wait", 0)) {}

  void Append(std::string& request, std::uint64_t index) const {
    const std::uint64_t high = Scatter(seed_ ^ Scatter(index));
    const std::uint64_t low = Scatter(high ^ seed_);
    const std::string body = fmt::format(
        R"({{"name":"vm-{:016x}","image":"{}","cpus":1,"memory_mib":512,"disk_gib":10,)"
        R"("ssh_keys":["ssh-ed25519 )"
        R"(AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bench"]}})",
        high, image_);
    const auto to = std::back_inserter(request);
    fmt::format_to(to,
                   "POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   "Idempotency-Key: {:016x}{:016x}\r\nContent-Length: {}\r\n",
                   high, low, body.size());
    if (wait_ > 0) fmt::format_to(to, "Prefer: wait={}\r\n", wait_);
    request += "\r\n";
    request += body;
  }

 private:
  const std::uint64_t seed_;
  const std::string image_;
  const std::int64_t wait_;
};

bool IsReplay(const LoadAnswer& answer) {
  return answer.head.find("Idempotent-Replayed: true") != std::string_view::npos;
}

std::string_view OperationOf(const LoadAnswer& answer) {
  static constexpr std::string_view kLocation = "Location: ";
  const std::size_t at = answer.head.find(kLocation);
  CHECK_MSG(at != std::string_view::npos, answer.head);
  const std::string_view rest = answer.head.substr(at + kLocation.size());
  return rest.substr(0, rest.find('\r'));
}

void Expect(const LoadAnswer& answer, bool is_right) {
  CHECK_MSG(is_right, fmt::format("{}{}", answer.head, answer.body));
}

struct Target {
  explicit Target(const Arguments& arguments)
      : load(static_cast<std::uint16_t>(arguments.Number("port")),
             static_cast<int>(arguments.Number("connections", 1)), *clock) {}

  // Ends `seconds` from now, or after `count`, whichever is given.
  Load::Next Until(const Arguments& arguments, std::function<void(std::string&)> append) {
    const Instant end = arguments.Has("seconds")
                            ? clock->Monotonic() +
                                  std::chrono::nanoseconds(
                                      static_cast<std::int64_t>(arguments.Seconds("seconds") * 1e9))
                            : kNever;
    const std::int64_t most = arguments.Number("count", INT64_MAX);
    return [this, end, most, append = std::move(append)](std::string& request) {
      if (sent >= most || clock->Monotonic() >= end) return false;
      ++sent;
      append(request);
      return true;
    };
  }

  // Runs, and prints rate and percentiles.
  void Measure(const Load::Next& next, const Load::Take& take) {
    Samples samples;
    const Instant begin = clock->Monotonic();
    load.Run(next, [&](const LoadAnswer& answer) {
      samples.Add(answer.sent, answer.received);
      take(answer);
    });
    const double seconds = SecondsBetween(begin, clock->Monotonic());
    fmt::print("{{\"rate\":{:.1f},\"count\":{},\"seconds\":{:.3f},{}}}\n",
               static_cast<double>(samples.count()) / seconds, samples.count(), seconds,
               samples.Json());
  }

  const std::unique_ptr<Clock> clock = NewSystemClock();
  Load load;
  std::int64_t sent = 0;
};

// What /metrics says of operations in that state.
std::int64_t InState(Target& target, std::string_view state) {
  std::int64_t count = -1;
  bool is_sent = false;
  const auto next = [&](std::string& request) {
    if (is_sent) return false;
    is_sent = true;
    AppendGet(request, "/metrics");
    return true;
  };
  target.load.Run(next, [&](const LoadAnswer& answer) {
    Expect(answer, answer.status == 200);
    const std::string line = fmt::format("\nvmonce_operations_in_state{{state=\"{}\"}} ", state);
    const std::size_t at = answer.body.find(line);
    count = at == std::string_view::npos
                ? 0
                : std::strtoll(std::string(answer.body.substr(at + line.size(), 24)).c_str(),
                               nullptr, 10);
  });
  return count;
}

}  // namespace

void MeasureGet(const Arguments& arguments) {
  Target target(arguments);
  const std::string path = arguments.Text("path");
  target.Measure(target.Until(arguments, [&](std::string& request) { AppendGet(request, path); }),
                 [](const LoadAnswer& answer) { Expect(answer, answer.status == 200); });
}

void MeasureCreate(const Arguments& arguments) {
  Target target(arguments);
  const Creates creates(arguments);
  const int expected = arguments.Has("wait") ? 201 : 202;
  std::uint64_t index = 0;
  target.Measure(
      target.Until(arguments, [&](std::string& request) { creates.Append(request, index++); }),
      [expected](const LoadAnswer& answer) {
        Expect(answer, answer.status == expected && !IsReplay(answer));
      });
}

void MeasureReplay(const Arguments& arguments) {
  Target target(arguments);
  const Creates creates(arguments);
  const auto keys = static_cast<std::uint64_t>(arguments.Number("keys"));
  // One after the other, so that each is repeated as often as the others.
  std::uint64_t turn = 0;
  target.Measure(
      target.Until(arguments,
                   [&](std::string& request) { creates.Append(request, turn++ % keys); }),
      [](const LoadAnswer& answer) {
        const bool is_known = answer.status == 200 || answer.status == 202;
        Expect(answer, is_known && IsReplay(answer));
      });
}

void MeasureStorm(const Arguments& arguments) {
  Target target(arguments);
  const Creates creates(arguments);
  const auto connections = arguments.Number("connections");
  Samples last_answers;
  for (std::int64_t round = 0; round < arguments.Number("rounds"); ++round) {
    std::int64_t left = connections;
    std::int64_t created = 0;
    std::set<std::string> operations;
    const Instant begin = target.clock->Monotonic();
    target.load.Run(
        [&](std::string& request) {
          if (left-- <= 0) return false;
          creates.Append(request, static_cast<std::uint64_t>(round));
          return true;
        },
        [&](const LoadAnswer& answer) {
          Expect(answer, answer.status == 202 || (answer.status == 200 && IsReplay(answer)));
          created += IsReplay(answer) ? 0 : 1;
          operations.emplace(OperationOf(answer));
        });
    last_answers.Add(begin, target.clock->Monotonic());
    CHECK_MSG(
        created == 1 && operations.size() == 1,
        fmt::format("round {}: {} created, {} operations", round, created, operations.size()));
  }
  fmt::print("{{\"rounds\":{},\"created_each\":1,{}}}\n", last_answers.count(),
             last_answers.Json());
}

void MeasureLives(const Arguments& arguments) {
  Target target(arguments);
  const Creates creates(arguments);
  const std::int64_t count = arguments.Number("count");
  const std::int64_t before = InState(target, "succeeded");
  std::uint64_t index = 0;
  const Instant begin = target.clock->Monotonic();
  target.load.Run(
      target.Until(arguments, [&](std::string& request) { creates.Append(request, index++); }),
      [](const LoadAnswer& answer) { Expect(answer, answer.status == 202 && !IsReplay(answer)); });
  const Instant accepted = target.clock->Monotonic();
  const auto threads = NewSystemThreads();
  while (InState(target, "succeeded") - before < count) {
    CHECK_MSG(SecondsBetween(accepted, target.clock->Monotonic()) < kReadyWithin,
              "not all of them became ready");
    threads->SleepFor(kReadyEvery, {});
  }
  const Instant ready = target.clock->Monotonic();
  fmt::print("{{\"rate\":{:.1f},\"count\":{},\"accept_seconds\":{:.3f},\"seconds\":{:.3f}}}\n",
             static_cast<double>(count) / SecondsBetween(begin, ready), count,
             SecondsBetween(begin, accepted), SecondsBetween(begin, ready));
}

}  // namespace vmonce::bench
