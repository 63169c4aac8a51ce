#include "app/invocation.h"

#include <fmt/format.h>

#include "app/json_text.h"
#include "base/uuid.h"
#include "model/limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using client::CallEnd;
using client::CallResult;

// The API names things by their path; commands take the id.
std::string_view IdOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

ExitCode ReportNoAnswer(const Invocation& run, std::string_view what, const CallResult& result) {
  if (result.end == CallEnd::kInterrupted) {
    run.messages.Say(fmt::format("{}: interrupted before an answer came", what));
    return ExitCode::kDetached;
  }
  const std::string& cause = result.error->detail;
  run.messages.Say(fmt::format("error: {}: no answer from {} after {} {}: {}", what,
                               run.client.base_url(), result.tries,
                               result.tries == 1 ? "try" : "tries", cause));
  if (result.error->code == ErrorCode::kInvalid) return ExitCode::kFailed;
  if (result.error->code == ErrorCode::kRefused) {
    run.messages.Say(
        "  repair: name the file of the authority that made the server's certificate with --cacert "
        "or VMONCE_CACERT, use a name or address of that certificate in --url, and, where the "
        "server asks for one, show your own with --client-cert and --client-key");
    return ExitCode::kUnreachable;
  }
  run.messages.Say(
      "  repair: start it with `vmonce serve`, or name another server with --url or VMONCE_URL");
  return ExitCode::kUnreachable;
}

CallResult CallToChange(const Invocation& run, client::ApiRequest request) {
  request.budget = run.globals.timeout.value_or(limits::kClientBudget);
  return run.client.Call(request, run.world.stop);
}

}  // namespace

Instant Deadline(const Invocation& run) {
  return run.begin + run.globals.timeout.value_or(limits::kClientWait);
}

CallResult Get(const Invocation& run, std::string path, Query query) {
  client::ApiRequest request;
  request.path = std::move(path);
  request.query = std::move(query);
  request.budget = run.globals.timeout.value_or(limits::kClientReadBudget);
  return run.client.Call(request, run.world.stop);
}

CallResult Change(const Invocation& run, std::string method, std::string path, std::string key) {
  client::ApiRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  if (request.method != "DELETE") request.body = "{}";
  request.key = std::move(key);
  return CallToChange(run, std::move(request));
}

CallResult Post(const Invocation& run, std::string path, const boost::json::object& body) {
  client::ApiRequest request;
  request.method = "POST";
  request.path = std::move(path);
  request.body = boost::json::serialize(body);
  request.key = NewKey(run.world);
  return CallToChange(run, std::move(request));
}

Listing GetAll(const Invocation& run, std::string path, Query query) {
  Listing listing;
  query.emplace_back("limit", std::to_string(limits::kPageItems));
  const std::size_t own = query.size();
  for (int page = 0; page < limits::kClientPages; ++page) {
    CallResult result = Get(run, path, query);
    if (!result.IsSuccess()) {
      listing.failure = std::move(result);
      return listing;
    }
    for (auto& item : ListAt(result.json, "items")) listing.items.push_back(std::move(item));
    const std::string next = TextAt(result.json, "next");
    if (next.empty()) break;
    query.resize(own);
    query.emplace_back("cursor", next);
  }
  return listing;
}

std::string NewKey(const World& world) {
  return "vmonce-" + ToString(NewUuidV7(world.clock, world.random));
}

std::string CommandHint(const Invocation& run, std::string_view command) {
  return fmt::format("vmonce {}{}", run.globals.reach, command);
}

ExitCode ReportFailure(const Invocation& run, std::string_view what, const CallResult& result) {
  if (!result.response) return ReportNoAnswer(run, what, result);
  const client::ApiProblem problem = client::ReadProblem(*result.response);
  const std::string& cause = problem.detail.empty() ? problem.title : problem.detail;
  run.messages.Say(fmt::format("error: {}: {}", what, cause));
  for (const auto& [pointer, detail] : problem.fields) {
    run.messages.Say(fmt::format("  {}: {}", pointer, detail));
  }
  if (!problem.differing.empty()) {
    run.messages.Say(
        fmt::format("  differs from the first request at: {}", fmt::join(problem.differing, ", ")));
  }
  if (!problem.first_seen.empty()) {
    run.messages.Say(fmt::format("  the key was first used at {}", problem.first_seen));
  }
  if (!problem.vm.empty()) run.messages.Say(fmt::format("  vm: {}", IdOf(problem.vm)));
  if (const auto repair = RepairOf(problem.code); !repair.empty()) {
    run.messages.Say(fmt::format("  repair: {}", repair));
  }
  if (!problem.operation.empty()) {
    run.messages.Say(fmt::format("  operation: {}", IdOf(problem.operation)));
  }
  run.messages.Say(fmt::format("  code: {} (HTTP {})", problem.code, problem.status));
  return ExitCodeOf(problem);
}

ExitCode ReportForeignAnswer(const Invocation& run, std::string_view what) {
  run.messages.Say(
      fmt::format("error: {}: {} answered, but not as vmonce does", what, run.client.base_url()));
  run.messages.Say("  repair: check --url and VMONCE_URL");
  return ExitCode::kFailed;
}

std::string RepairOf(std::string_view code) {
  struct Row {
    std::string_view code, repair;
  };
  constexpr Row kRows[] = {
      {"idempotency_key_reused",
       "for another VM leave --key out or choose a new one; for the same VM repeat the first "
       "request unchanged"},
      {"idempotency_key_expired", "its VM is gone; for a new VM choose a new key"},
      {"image_not_found", "`vmonce images` lists what there is"},
      {"image_exists", "choose another --name; `vmonce images` lists what there is"},
      {"image_in_use", "delete its VMs first; `vmonce list` shows which VM has which image"},
      {"image_invalid", "use a raw or qcow2 disk that needs no other file; see docs/images.md"},
      {"image_unavailable",
       "put the file back or make room where the detail says, then repeat with the same key"},
      {"name_taken", "choose another name, or look at the VM that has it: `vmonce get NAME`"},
      {"vm_not_found", "`vmonce list` lists what there is"},
      {"operation_not_found", "`vmonce operations` lists what there is"},
      {"no_capacity",
       "`vmonce hosts` shows what is free; ask for less or delete a VM, then repeat with the same "
       "key"},
      {"quota_exceeded", "delete a VM or ask for a larger quota, then repeat with the same key"},
      {"too_many_keys", "delete VMs that are no longer needed, or ask for a larger quota"},
      {"unauthenticated",
       "set VMONCE_TOKEN, or put the token into a file and name it with --token-file; an operator "
       "makes one with `vmonce token create`"},
      {"forbidden", "use a token with the role that is named above"},
      {"hypervisor_refused", "the host cannot run this VM; change the request and use a new key"},
      {"hypervisor_unavailable",
       "`vmonce hosts` shows why; when the host answers again, repeat with the same key"},
      {"ledger_behind",
       "an older ledger was restored; its operator puts the newest copy back, or reads the "
       "machines "
       "in with `vmonce rebuild`, before it takes requests"},
      {"conflict", "something that is not vmonce's stands in the way on the host; remove it there"},
      {"host_not_allowed",
       "reach the server by the address it listens on, or have the name added to [server] "
       "allowed_hosts of its configuration"},
      {"tls_required", "write https:// in --url"},
      {"console_not_ready", "wait until the VM has been started"},
      {"http_404", "this server is not vmonce, or is an older one; check --url"},
  };
  for (const Row& row : kRows) {
    if (row.code == code) return std::string(row.repair);
  }
  return "";
}

}  // namespace vmonce::app
