// create: keep the intent, send it until the answer is known, follow it to the end.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/console_text.h"
#include "app/create_request.h"
#include "app/create_ticket.h"
#include "app/doctor_command.h"
#include "app/follow.h"
#include "app/json_text.h"
#include "app/lookup.h"
#include "app/vm_goal.h"
#include "app/ways_in.h"
#include "base/json.h"
#include "client/url.h"
#include "model/idempotency.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using boost::json::value;
using client::CallEnd;
using client::CallResult;

struct CreateFlags {
  CreateFields fields;
  std::optional<std::string> key;
  std::string wait = "ready";
  bool is_resume = false;
  std::string resume_key;
  bool is_dry_run = false;
};

enum class CreateWait { kAccepted, kStarted, kAddress, kReady };

// One create under way.
struct Creation {
  const Invocation& run;
  Ticket ticket;
  CreateWait wait_for;
  value answer{};          // Of the POST.
  bool is_replay = false;  // An earlier request made what is answered.
};

std::optional<CreateWait> ParseWait(std::string_view text) {
  if (text == "accepted") return CreateWait::kAccepted;
  if (text == "started") return CreateWait::kStarted;
  if (text == "address") return CreateWait::kAddress;
  if (text == "ready") return CreateWait::kReady;
  return std::nullopt;
}

std::string Sentence(const Ticket& ticket) {
  return fmt::format("repeating this command with --key {} returns the same VM", ticket.intent.key);
}

CallResult Post(const Invocation& run, const client::Intent& intent, bool is_dry_run,
                std::chrono::seconds prefer_wait) {
  client::ApiRequest request;
  request.method = "POST";
  request.path = "/v1/vms";
  if (is_dry_run) request.query = {{"dry_run", "true"}};
  request.body = intent.body;
  request.key = intent.key;
  request.prefer_wait = prefer_wait;
  request.budget = run.globals.timeout.value_or(limits::kClientBudget);
  return run.client.Call(request, run.world.stop);
}

// True when the refusal settles the intent: another send of the same would be answered the same.
bool IsSettledBy(const CallResult& result) {
  const client::ApiProblem problem = client::ReadProblem(*result.response);
  if (!problem.is_document) return false;
  // An earlier try may have been accepted before the caller lost the right to ask.
  const bool is_denied = problem.status == 401 || problem.status == 403;
  if (is_denied && result.may_have_happened) return false;
  return problem.status < 500 || !problem.is_retryable;
}

ExitCode EndUnaccepted(Creation& creation, const CallResult& result) {
  const Invocation& run = creation.run;
  const ExitCode code = ReportFailure(run, "create", result);
  if (result.end == CallEnd::kAnswered && IsSettledBy(result)) {
    const auto problem = client::ReadProblem(*result.response);
    if (!problem.vm.empty() && !problem.operation.empty())
      SayConsoleTail(run, problem.vm.substr(problem.vm.rfind('/') + 1));
    creation.ticket.Finish(run);
    return code;
  }
  run.messages.Say(result.may_have_happened
                       ? "  it is not known whether the request arrived; nothing is made twice by "
                         "going on with it:"
                       : "  the request is kept; go on with it:");
  run.messages.Say("  " + creation.ticket.ResumeHint(run));
  if (code == ExitCode::kUnreachable && !result.response) SayWhatIsWrongHere(run, false);
  return code;
}

// The VMs as they are now; those of the first answer where the server does not say.
std::vector<value> CurrentVms(const Creation& creation) {
  auto vms = ListAt(creation.answer, "vms");
  if (vms.empty()) vms.push_back(*At(creation.answer, "vm"));
  for (value& vm : vms) {
    if (creation.wait_for == CreateWait::kAccepted) continue;
    const auto now = Get(creation.run, "/v1/vms/" + client::PercentEncode(TextAt(vm, "id")));
    if (now.IsSuccess()) vm = now.json;
  }
  return vms;
}

void PrintVms(const Creation& creation, const value& operation, const std::vector<value>& vms) {
  boost::json::object document;
  document["result"] = TextAt(creation.answer, "result");
  document["idempotency_key"] = creation.ticket.intent.key;
  document["operation"] = operation;
  document["vm"] = vms.front();
  document["vms"] = boost::json::array(vms.begin(), vms.end());
  PrintDocument(creation.run.world.terminal, creation.run.globals.format, document, vms,
                kVmColumns);
}

void SayVms(const Creation& creation, const std::vector<value>& vms, Milliseconds elapsed) {
  const Invocation& run = creation.run;
  const bool is_old = TextAt(creation.answer, "result") == "existing";
  for (const value& vm : vms) {
    run.messages.Say(fmt::format("{} ({}) {} {}{}", NameOf(vm), TextAt(vm, "id"),
                                 is_old ? "exists already under this key and is" : "is",
                                 TextAt(vm, "state"),
                                 is_old ? "" : fmt::format(" after {}", Elapsed(elapsed))));
    SayWaysIn(run, vm);
    run.messages.Say("  console: " + CommandHint(run, "console " + NameOf(vm)));
  }
  run.messages.Say("  " + Sentence(creation.ticket));
}

ExitCode EndFailed(Creation& creation, const value& operation, const std::vector<value>& vms) {
  const Invocation& run = creation.run;
  ReportOperationFailure(run, operation, "create");
  const std::string cause = TextAt(FailureOf(operation), "code");
  for (const value& vm : vms) {
    if (TextAt(vm, "state") == "failed") SayConsoleTail(run, TextAt(vm, "id"));
  }
  if (IsTrueAt(FailureOf(operation), "retryable")) {
    run.messages.Say("  the cause may pass; try again under the same key: " +
                     creation.ticket.ResumeHint(run));
  } else {
    creation.ticket.Finish(run);
  }
  if (cause == "hypervisor_refused" || cause == "hypervisor_unavailable") {
    SayWhatIsWrongHere(run, true);
  }
  return ExitCode::kFailed;
}

// With --wait=address. The create itself has succeeded: what is missing here is told, not undone.
ExitCode AwaitAddresses(const Creation& creation, std::vector<value>& vms) {
  ExitCode code = ExitCode::kDone;
  if (creation.wait_for != CreateWait::kAddress) return code;
  for (value& vm : vms) {
    const ExitCode end = WaitForGoal(creation.run, vm, VmGoal::kAddress);
    if (code == ExitCode::kDone) code = end;
    if (creation.run.world.stop.stop_requested()) break;
  }
  return code;
}

ExitCode EndReached(Creation& creation, const value& operation, Milliseconds elapsed) {
  const Invocation& run = creation.run;
  auto vms = CurrentVms(creation);
  const std::string state = TextAt(operation, "state");
  if (state == "failed" || state == "cancelled") {
    PrintVms(creation, operation, vms);
    return EndFailed(creation, operation, vms);
  }
  const ExitCode addressed = AwaitAddresses(creation, vms);
  PrintVms(creation, operation, vms);
  SayVms(creation, vms, elapsed);
  // Accepted for good: from here on the server remembers.
  creation.ticket.Finish(run);
  const bool is_gone = std::ranges::any_of(
      vms, [](const value& vm) { return TextAt(vm, "state").starts_with("delet"); });
  if (is_gone) {
    run.messages.Say("error: it has been deleted since, and a key never makes a second VM");
    run.messages.Say("  repair: for a new VM choose a new key");
    return ExitCode::kFailed;
  }
  return addressed;
}

ExitCode EndUnfinished(Creation& creation, const FollowResult& followed) {
  const Invocation& run = creation.run;
  const std::string id = TextAt(creation.answer, "operation.id");
  ExitCode code = ExitCode::kRunning;
  if (followed.end == FollowEnd::kTimedOut) {
    run.messages.Say("still running: the waiting has ended, the create goes on");
  } else if (followed.end == FollowEnd::kInterrupted) {
    run.messages.Say("detached: the create goes on without this command");
    code = ExitCode::kDetached;
  } else {
    code = ReportFailure(run, "following the create", followed.last);
    run.messages.Say("  the create was accepted and goes on when the server is back");
  }
  run.messages.Say("  operation: " + id);
  run.messages.Say("  resume: " + creation.ticket.ResumeHint(run));
  run.messages.Say("  " + Sentence(creation.ticket));
  return code;
}

ExitCode FollowCreation(Creation& creation) {
  const Invocation& run = creation.run;
  const value& operation = *At(creation.answer, "operation");
  Progress progress(run.messages, run.world.clock, run.begin,
                    creation.is_replay ? ProgressOf::kEarlier : ProgressOf::kOurs);
  run.messages.Say(fmt::format("{} as operation {}: {} ({})",
                               creation.is_replay ? "accepted before" : "accepted",
                               TextAt(operation, "id"), NameOf(*At(creation.answer, "vm")),
                               TextAt(creation.answer, "vm.id")));
  if (creation.wait_for == CreateWait::kAccepted) {
    return EndReached(creation, operation, progress.SinceBegin());
  }
  const WaitFor wait_for =
      creation.wait_for == CreateWait::kStarted ? WaitFor::kStarted : WaitFor::kEnd;
  const FollowResult followed = Follow(run, TextAt(operation, "id"), wait_for, progress, operation);
  progress.End();
  if (followed.end != FollowEnd::kReached) return EndUnfinished(creation, followed);
  return EndReached(creation, followed.operation, progress.SinceBegin());
}

ExitCode Create(Creation& creation) {
  const Invocation& run = creation.run;
  // What it is good for is said at the end: a refused request has no VM to return.
  run.messages.Say("key " + creation.ticket.intent.key);
  const auto prefer_wait = creation.wait_for == CreateWait::kAccepted ? std::chrono::seconds(0)
                                                                      : limits::kClientPreferWait;
  // An answer that waits longer than we do would never be read.
  const bool may_wait = run.globals.timeout.value_or(limits::kClientBudget) > 2 * prefer_wait;
  CallResult result =
      Post(run, creation.ticket.intent, false, may_wait ? prefer_wait : std::chrono::seconds(0));
  if (!result.IsSuccess()) return EndUnaccepted(creation, result);
  creation.is_replay = result.response->Header("idempotent-replayed") == "true";
  creation.answer = std::move(result.json);
  if (TextAt(creation.answer, "vm.id").empty() || TextAt(creation.answer, "operation.id").empty()) {
    return ReportForeignAnswer(run, "create");
  }
  return FollowCreation(creation);
}

ExitCode DryRun(const Invocation& run, const std::string& body, const CreateFlags& flags) {
  const client::Intent intent{flags.key.value_or(NewKey(run.world)), run.globals.url, body, Time{}};
  const CallResult result = Post(run, intent, true, std::chrono::seconds(0));
  if (!result.IsSuccess()) return ReportFailure(run, "create --dry-run", result);
  PrintOne(run.world.terminal, run.globals.format, result.json);
  // What would be refused is inside, as it would be answered.
  const value* problem = At(result.json, "problem");
  if (problem == nullptr || !problem->is_object()) return ExitCode::kDone;
  const client::HttpResponse refusal{
      static_cast<int>(NumberAt(*problem, "status", 0)), {}, CompactJson(*problem)};
  return ExitCodeOf(client::ReadProblem(refusal));
}

ExitCode Usage(const Invocation& run, std::string_view text) {
  run.messages.Say(fmt::format("error: {}", text));
  return ExitCode::kUsage;
}

ExitCode RunNew(const Invocation& run, const CreateFlags& flags, CreateWait wait_for) {
  const auto body = BuildCreateBody(flags.fields);
  if (!body) return Usage(run, body.error().detail);
  const std::string canonical = CanonicalJson(*body);
  if (flags.is_dry_run) return DryRun(run, canonical, flags);
  auto ticket = TakeTicket(run, canonical, flags.key);
  if (!ticket) return ticket.error();
  Creation creation{run, std::move(*ticket), wait_for};
  return Create(creation);
}

ExitCode RunCreate(const Invocation& run, CreateFlags flags) {
  const auto wait_for = ParseWait(flags.wait);
  if (!wait_for) return Usage(run, "--wait is accepted, started, address or ready");
  if (flags.key) {
    // Either spelling of a key names the same one, here as in the header.
    const std::string_view line = *flags.key;
    const auto parsed = model::ParseKey({&line, 1});
    if (!parsed || !*parsed) return Usage(run, "--key: " + parsed.error().detail);
    flags.key = (*parsed)->value;
  }
  if (!flags.is_resume) return RunNew(run, flags, *wait_for);
  const auto key = flags.resume_key.empty() ? flags.key : std::optional(flags.resume_key);
  auto ticket = ResumeTicket(run, key);
  if (!ticket) return ticket.error();
  Creation creation{run, std::move(*ticket), *wait_for};
  return Create(creation);
}

void AddFields(CLI::App& command, CreateFields& fields) {
  command.add_option("--name", fields.name, "Name, unique among live VMs (default: generated)")
      ->type_name("NAME");
  command.add_option("--image", fields.image, "Image; `vmonce images` lists them")
      ->type_name("IMAGE");
  command.add_option("--cpus", fields.cpus, "Virtual CPUs")->type_name("N");
  command.add_option("--memory", fields.memory, "Memory: MiB, or a size like 2G")
      ->type_name("SIZE");
  command.add_option("--disk", fields.disk, "Disk: GiB, or a size like 10G (default: the image's)")
      ->type_name("SIZE");
  command.add_option("--ssh-key", fields.ssh_key_files, "File of public keys (repeatable)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command.add_option("--user-data", fields.user_data_file, "File of cloud-init user data")
      ->type_name("FILE");
  command.add_option("--label", fields.labels, "Label k=v (repeatable)")
      ->allow_extra_args(false)
      ->type_name("K=V");
  command.add_option("--hostname", fields.hostname, "Host name in the guest (default: the name)")
      ->type_name("NAME");
  command.add_option("--desired", fields.desired, "running (default), or stopped: not started")
      ->type_name("running|stopped");
  command
      .add_option("--restart", fields.restart,
                  "host-failure (default): started again when its host took it down; or never")
      ->type_name("host-failure|never");
  command
      .add_option("--forward", fields.forwards,
                  "Way in: [HOST_PORT:]GUEST_PORT[/udp], such as 22 (repeatable)")
      ->allow_extra_args(false)
      ->type_name("PORTS");
  command
      .add_option("--network", fields.network, "user (default), a libvirt network, or bridge:NAME")
      ->type_name("NETWORK");
  command.add_option("--count", fields.count, "Make so many: NAME-0, NAME-1, ...")->type_name("N");
}

}  // namespace

void AddCreate(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("create", "Create a VM, exactly once");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<CreateFlags>();
  AddFields(*command, flags->fields);
  command->add_option("--key", flags->key, "Idempotency key (default: made, kept and printed)")
      ->type_name("KEY");
  command->add_option("--wait", flags->wait, "Wait until it is (default: ready)")
      ->type_name("accepted|started|address|ready");
  auto* resume = command->add_option("--resume", flags->resume_key,
                                     "Finish an unfinished create (of this KEY, or the only one)");
  resume->expected(0, 1)->type_name("[KEY]");
  command->add_flag("--dry-run", flags->is_dry_run, "Say what would happen; nothing is created");
  command->callback([&chosen, flags, resume] {
    flags->is_resume = resume->count() > 0;
    chosen = [flags](const Invocation& run) { return RunCreate(run, *flags); };
  });
}

}  // namespace vmonce::app
