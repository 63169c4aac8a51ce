#include <signal.h>
#include <unistd.h>

#include "app/command_line.h"
#include "app/doctor_look.h"
#include "base/system.h"
#include "client/curl_transport.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

// Ctrl-C ends the waiting, in order; a second one ends the process at once. The signal is taken by
// a thread of its own: in a handler nearly nothing may be done.
class InterruptWatcher final {
 public:
  // To be made while no other thread exists, so that all inherit the blocked signals.
  explicit InterruptWatcher(Threads& threads) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = threads.Spawn("interrupts", [this](std::stop_token stop) { Watch(stop); });
  }
  std::stop_token stop() const { return source_.get_token(); }

 private:
  void Watch(std::stop_token stop) {
    while (!stop.stop_requested()) {
      // Short, since nothing else wakes it when the command ends.
      const timespec wait{.tv_sec = 0, .tv_nsec = 20'000'000};
      if (sigtimedwait(&signals_, nullptr, &wait) < 0) continue;
      if (source_.stop_requested()) _exit(static_cast<int>(ExitCode::kDetached));
      source_.request_stop();
    }
  }

  sigset_t signals_{};
  std::stop_source source_;
  std::unique_ptr<Thread> thread_;  // Last: it uses the others.
};

ExitCode RunClientProcess(const ParsedClient& parsed, Terminal& terminal) {
  const auto clock = NewSystemClock();
  const auto random = NewSystemRandom();
  const auto threads = NewSystemThreads();
  const auto transport =
      client::NewCurlTransport({.user_agent = "vmonce/" VMONCE_VERSION,
                                .connect_timeout = model::limits::kClientConnect,
                                .max_answer_bytes = model::limits::kClientAnswerBytes,
                                .tls = parsed.globals.tls});
  const InterruptWatcher watcher(*threads);
  return RunClient(parsed, World{*transport, *clock, *random, *threads, terminal, &Environment,
                                 watcher.stop(), [&clock](const LookRequest& request) {
                                   return LookAtThisMachine(request, *clock, &Environment);
                                 }});
}

int Main(const std::vector<std::string>& arguments) {
  const auto terminal = NewSystemTerminal(&Environment);
  const Parsed parsed = ParseCommandLine(arguments, *terminal, &Environment);
  if (const auto* serve = std::get_if<ServeFlags>(&parsed)) return RunServe(*serve);
  if (const auto* sim = std::get_if<SimFlags>(&parsed)) {
    return static_cast<int>(RunSim(*sim, *terminal));
  }
  if (const auto* ended = std::get_if<ExitCode>(&parsed)) return static_cast<int>(*ended);
  return static_cast<int>(RunClientProcess(std::get<ParsedClient>(parsed), *terminal));
}

}  // namespace
}  // namespace vmonce::app

int main(int argc, char** argv) {
  return vmonce::app::Main(std::vector<std::string>(argv + 1, argv + argc));
}
