// Wires the service together, runs it until a signal, and takes it down in order. Guests go on
// running.
#include "app/serve.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "app/config.h"
#include "app/exit_code.h"
#include "app/node.h"
#include "app/serve_check.h"
#include "app/service_manager.h"
#include "base/system.h"

namespace vmonce::app {
namespace {

constexpr int kRefused = static_cast<int>(ExitCode::kFailed);
constexpr int kUsage = static_cast<int>(ExitCode::kUsage);

// Every connection is a descriptor, and so are guests' monitors.
void RaiseOpenFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// glibc gives memory back to the kernel 128 KiB at a time and takes it again a request later: a
// system call and fresh pages for every few requests.
void KeepFreedMemory() {
  constexpr int kGrowBytes = 1 << 20;
  constexpr int kKeptBytes = 8 << 20;
  mallopt(M_TOP_PAD, kGrowBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

// Blocked before any thread is made, so that all inherit it and only ServeUntilTold() takes them.
sigset_t BlockSignals() {
  sigset_t signals{};
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

int Check(const Config& config) {
  bool is_ok = true;
  for (const CheckLine& line : CheckStart(config, NewSystemClock()->Now())) {
    std::printf("%-5s  %s\n", line.is_ok ? "ok" : "fault", line.text.c_str());
    is_ok = is_ok && line.is_ok;
  }
  return is_ok ? 0 : kRefused;
}

// The next signal. Meanwhile systemd's watchdog is fed as long as requests are taken.
int NextSignal(const sigset_t& signals, const Node& node) {
  const auto period = AlivePeriod();
  while (true) {
    int received = 0;
    if (!period && sigwait(&signals, &received) == 0) return received;
    if (!period) continue;
    const timespec wait{.tv_sec = period->count() / 1'000,
                        .tv_nsec = period->count() % 1'000 * 1'000'000};
    received = sigtimedwait(&signals, nullptr, &wait);
    if (received > 0) return received;
    if (node.IsTakingRequests(*period)) NotifyAlive();
  }
}

// The signal that ends it. SIGHUP does when it says that the terminal is gone.
int ServeUntilTold(const sigset_t& signals, Node& node) {
  const bool has_terminal = isatty(STDERR_FILENO) == 1;
  for (;;) {
    const int received = NextSignal(signals, node);
    const bool is_hung_up = has_terminal && isatty(STDERR_FILENO) == 0;
    if (received != SIGHUP || is_hung_up) return received;
    node.ReloadTls();
  }
}

int Refuse(const Error& error) {
  std::fprintf(stderr, "vmonce serve: %s\n", error.detail.c_str());
  return kRefused;
}

}  // namespace

int RunServe(const ServeFlags& flags) {
  const std::optional<std::string> path =
      flags.config_path.empty() ? std::nullopt : std::optional(flags.config_path);
  std::vector<std::string> overrides = flags.overrides;
  if (flags.behind_tls_proxy) overrides.emplace_back("server.behind_tls_proxy=true");
  const auto config = ReadConfig(path, overrides, &Environment);
  if (!config) {
    for (const ConfigMistake& mistake : config.error()) {
      std::fprintf(stderr, "%s\n", mistake.Format().c_str());
    }
    return kUsage;
  }
  if (flags.is_check) return Check(*config);
  RaiseOpenFiles();
  KeepFreedMemory();
  const sigset_t signals = BlockSignals();

  const auto clock = NewSystemClock();
  const auto random = NewSystemRandom();
  const auto threads = NewSystemThreads();
  const auto logger = NewStderrLogger(*clock, config->log_level);
  Result<std::unique_ptr<Node>> node =
      Node::Open(*config, NodeDoors{*clock, *random, *threads, *logger});
  if (!node) return Refuse(node.error());
  if (const Status started = (*node)->Start(); !started) return Refuse(started.error());
  logger->Info(
      "serving",
      {{"url", (*node)->Url()}, {"ledger", (*node)->LedgerId()}, {"state", config->state.dir}});

  NotifyReady("Serving " + (*node)->Url());
  const int received = ServeUntilTold(signals, **node);
  NotifyStopping();
  logger->Info("stopping", {{"signal", received}});
  const bool is_clean = (*node)->Stop();
  logger->Info("stopped", {{"is_clean", is_clean}});
  // A call to a hung hypervisor cannot be ended, and owns what it touches until the process does.
  if (!is_clean) _exit(0);
  return 0;
}

}  // namespace vmonce::app
