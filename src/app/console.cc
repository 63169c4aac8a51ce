#include <fmt/format.h>

#include "app/commands.h"
#include "app/console_text.h"
#include "app/json_text.h"
#include "app/lookup.h"
#include "client/url.h"
#include "model/console_limits.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

struct ConsoleFlags {
  std::string vm;
  bool is_followed = false;
  int tail = -1;  // Lines; negative: all of it.
};

// What to do after a part that was no success.
enum class AfterFailure { kReport, kWait, kEnd };

class Console {
 public:
  Console(const Invocation& run, const ConsoleFlags& flags, const boost::json::value& vm)
      : run_(run), flags_(flags), id_(TextAt(vm, "id")), name_(NameOf(vm)) {}

  ExitCode Run();

 private:
  // Prints what is there; true when there may be more at once.
  bool Print(ConsolePart part);
  AfterFailure Judge(const client::CallResult& call);
  bool IsDeleted();
  bool IsOver() const {
    return run_.globals.timeout && run_.world.clock.Monotonic() >= Deadline(run_);
  }

  const Invocation& run_;
  const ConsoleFlags& flags_;
  const std::string id_;
  const std::string name_;
  std::int64_t offset_ = 0;
  Instant quiet_since_{};
  bool was_lost_ = false;  // The server, and it was said.
};

std::string LastLines(std::string_view text, int lines) {
  std::size_t begin = text.size();
  // A newline at the very end ends the last line and begins none.
  if (begin > 0 && text[begin - 1] == '\n') --begin;
  for (; lines > 0 && begin != std::string_view::npos && begin > 0; --lines) {
    begin = text.rfind('\n', begin - 1);
    if (begin == std::string_view::npos) return std::string(text);
  }
  if (begin > 0) ++begin;
  return std::string(text.substr(std::min(begin, text.size())));
}

ExitCode Console::Run() {
  const bool has_tail = flags_.tail >= 0;
  if (has_tail) offset_ = -static_cast<std::int64_t>(limits::kConsoleBytes);
  quiet_since_ = run_.world.clock.Monotonic();
  for (bool is_first = true;; is_first = false) {
    ConsolePart part = ReadConsole(run_, id_, offset_);
    if (run_.world.stop.stop_requested()) return ExitCode::kDetached;
    if (part.call.IsSuccess()) {
      if (has_tail && is_first) part.bytes = LastLines(part.bytes, flags_.tail);
      if (Print(std::move(part)) && !IsOver()) continue;
      if (!flags_.is_followed) return ExitCode::kDone;
    } else {
      const AfterFailure after = Judge(part.call);
      if (after == AfterFailure::kEnd) return ExitCode::kDone;
      if (after == AfterFailure::kReport) {
        return ReportFailure(run_, "console of " + name_, part.call);
      }
    }
    if (IsOver()) return ExitCode::kDone;
    const bool is_quiet = run_.world.clock.Monotonic() - quiet_since_ >= limits::kClientConsoleIdle;
    if (is_quiet && IsDeleted()) return ExitCode::kDone;
    if (!run_.world.threads.SleepFor(limits::kClientPollFast, run_.world.stop)) {
      return ExitCode::kDetached;
    }
  }
}

bool Console::Print(ConsolePart part) {
  if (was_lost_) run_.messages.Say("the server is back");
  was_lost_ = false;
  run_.world.terminal.Out(part.bytes);
  const bool has_more = !part.bytes.empty();
  if (has_more) quiet_since_ = run_.world.clock.Monotonic();
  // A console that became shorter was begun anew (a daemon's virtlogd does so): from its start on.
  const bool was_begun_anew = offset_ >= 0 && part.next < offset_;
  offset_ = was_begun_anew ? 0 : part.next;
  return has_more || was_begun_anew;
}

// A follower waits for a console that is not there yet, and for a server that is not there now.
AfterFailure Console::Judge(const client::CallResult& call) {
  if (!flags_.is_followed) return AfterFailure::kReport;
  if (!call.response) {
    if (call.error && call.error->code == ErrorCode::kInvalid) return AfterFailure::kReport;
    if (!was_lost_) run_.messages.Say("the server is away; waiting for it (Ctrl-C ends)");
    was_lost_ = true;
    return AfterFailure::kWait;
  }
  const client::ApiProblem problem = client::ReadProblem(*call.response);
  if (problem.code == "vm_not_found") return AfterFailure::kEnd;
  if (problem.code == "console_not_ready") {
    return IsDeleted() ? AfterFailure::kEnd : AfterFailure::kWait;
  }
  return problem.is_document && problem.is_retryable ? AfterFailure::kWait : AfterFailure::kReport;
}

// What is not known is no reason to end.
bool Console::IsDeleted() {
  const client::CallResult vm = Get(run_, "/v1/vms/" + client::PercentEncode(id_));
  quiet_since_ = run_.world.clock.Monotonic();
  const bool is_gone = vm.response && vm.response->status == 404 &&
                       client::ReadProblem(*vm.response).code == "vm_not_found";
  if (!is_gone && !(vm.IsSuccess() && TextAt(vm.json, "state") == "deleted")) return false;
  run_.messages.Say(fmt::format("VM {} was deleted", name_));
  return true;
}

ExitCode RunConsole(const Invocation& run, const ConsoleFlags& flags) {
  const auto vm = LookUpVm(run, flags.vm);
  if (!vm) return vm.error();
  // A server that is away is told once, not at every try.
  if (flags.is_followed) run.client.OnRetry(nullptr);
  return Console(run, flags, *vm).Run();
}

}  // namespace

void AddConsole(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("console", "Print a VM's serial console");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<ConsoleFlags>();
  command->add_option("VM", flags->vm, "Name or id")->required();
  command->add_flag("--follow,-f", flags->is_followed,
                    "Go on as the guest writes, until Ctrl-C or the VM is deleted");
  command->add_option("--tail", flags->tail, "Begin with the last so many lines")
      ->check(CLI::Range(0, limits::kClientTailLines));
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunConsole(run, *flags); };
  });
}

}  // namespace vmonce::app
