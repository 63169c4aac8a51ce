// doctor: looks at this computer and at the server, and tells what would break a first try.
#include "app/doctor_command.h"

#include <fmt/format.h>
#include <time.h>

#include "app/commands.h"
#include "app/doctor.h"
#include "app/json_text.h"
#include "base/http_date.h"
#include "model/doctor_limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;
using boost::json::value;
using client::CallResult;

struct DoctorFlags {
  std::string config_path;
  std::vector<std::string> overrides;
};

bool IsLocal(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::string_view host = url.substr(scheme == std::string_view::npos ? 0 : scheme + 3);
  return host.starts_with("127.") || host.starts_with("[::1]") || host.starts_with("localhost");
}

// One try, and a short one: doctor tells that nobody answers, it does not wait for it.
CallResult Ask(const Invocation& run, std::string path) {
  client::ClientOptions options = run.client.options();
  options.max_tries = 1;
  client::RetryingClient once(run.world.transport, run.world.clock, run.world.random,
                              run.world.threads, std::move(options));
  client::ApiRequest request;
  request.path = std::move(path);
  request.budget = limits::kDoctorServer;
  return once.Call(request, run.world.stop);
}

void ReadLists(const Invocation& run, ServerFacts& server) {
  const CallResult images = Ask(run, "/v1/images");
  if (images.IsSuccess()) {
    server.images = ListAt(images.json, "items").size();
    for (const value& image : ListAt(images.json, "items")) {
      std::string problem = TextAt(image, "problem");
      if (problem.empty()) continue;
      server.images_with_problems.push_back({TextAt(image, "name"), std::move(problem)});
    }
  }
  const CallResult hosts = Ask(run, "/v1/hosts");
  if (!hosts.IsSuccess()) return;
  for (const value& host : ListAt(hosts.json, "items")) {
    server.hosts.push_back(
        {TextAt(host, "id"), IsTrueAt(host, "reachable"), TextAt(host, "problem")});
  }
}

ServerFacts LookAtServer(const Invocation& run) {
  ServerFacts server;
  server.url = run.globals.url;
  server.is_local = IsLocal(server.url);
  const CallResult ready = Ask(run, "/readyz");
  if (!ready.response) {
    server.error = ready.error ? ready.error->detail : "interrupted";
    return server;
  }
  server.has_answered = true;
  server.status = ready.response->status;
  if (const auto date = ready.response->Header("date")) {
    if (const auto theirs = ParseHttpDate(*date)) {
      server.ahead =
          std::chrono::duration_cast<std::chrono::seconds>(*theirs - run.world.clock.Now());
    }
  }
  if (!ready.IsSuccess() || TextAt(ready.json, "status").empty()) {
    const client::ApiProblem problem = client::ReadProblem(*ready.response);
    server.code = problem.code;
    server.detail = problem.detail;
    if (!problem.code.starts_with("http_")) ReadLists(run, server);
    return server;
  }
  ReadLists(run, server);
  return server;
}

value ItemOf(const Finding& finding) {
  return {{"name", finding.name},
          {"result", ToString(finding.result)},
          {"what", finding.what},
          {"why", finding.why},
          {"repair", finding.repair}};
}

// For people: a line a finding, its reason and repair below it. Never cut.
void PrintFindings(const Invocation& run, const std::vector<Finding>& findings) {
  Terminal& terminal = run.world.terminal;
  const bool has_colour = terminal.traits().out_has_colour;
  for (const Finding& finding : findings) {
    const std::string_view colour = !has_colour                              ? ""
                                    : finding.result == FindingResult::kOk   ? "\033[32m"
                                    : finding.result == FindingResult::kWarn ? "\033[33m"
                                                                             : "\033[31m";
    terminal.Out(fmt::format("{}{:<4}{}  {:<10}  {}\n", colour, ToString(finding.result),
                             has_colour ? "\033[0m" : "", finding.name, Printable(finding.what)));
    if (!finding.why.empty()) {
      terminal.Out(fmt::format("      why:    {}\n", Printable(finding.why)));
    }
    if (!finding.repair.empty()) {
      terminal.Out(fmt::format("      repair: {}\n", Printable(finding.repair)));
    }
  }
}

std::ptrdiff_t CountOf(const std::vector<Finding>& findings, FindingResult result) {
  return std::ranges::count(findings, result, &Finding::result);
}

ExitCode RunDoctor(const Invocation& run, const DoctorFlags& flags) {
  DoctorFacts facts = run.world.look({flags.config_path, flags.overrides, true});
  facts.server = LookAtServer(run);
  const std::vector<Finding> findings = Diagnose(facts);
  if (run.globals.format == OutputFormat::kTable) {
    PrintFindings(run, findings);
  } else {
    std::vector<value> items;
    for (const Finding& finding : findings) items.push_back(ItemOf(finding));
    PrintItems(run.world.terminal, run.globals.format, items, {});
  }
  const auto failing = CountOf(findings, FindingResult::kFail);
  run.messages.Say(fmt::format("{} checks: {} ok, {} to look at, {} failing", findings.size(),
                               CountOf(findings, FindingResult::kOk),
                               CountOf(findings, FindingResult::kWarn), failing));
  return failing == 0 ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

void SayWhatIsWrongHere(const Invocation& run, bool with_kvm) {
  if (!run.world.look || !IsLocal(run.globals.url)) return;
  DoctorFacts facts = run.world.look({"", {}, with_kvm});
  // Without a file the service was started with another one; images are its matter, keys no cause.
  constexpr std::string_view kBesides[] = {"image", "public_key", "clock"};
  bool is_said = false;
  for (const Finding& finding : Diagnose(facts)) {
    const bool is_besides = std::ranges::find(kBesides, finding.name) != std::end(kBesides);
    if (finding.result == FindingResult::kOk || is_besides) continue;
    if (!is_said) run.messages.Say("  on this computer (vmonce doctor tells all):");
    is_said = true;
    run.messages.Say(
        fmt::format("    {}: {}: {}", ToString(finding.result), finding.what, finding.why));
    run.messages.Say("      repair: " + finding.repair);
  }
}

void AddDoctor(CLI::App& app, ClientCommand& chosen) {
  auto* command =
      app.add_subcommand("doctor", "Check what a first try needs; say how to mend what is missing");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<DoctorFlags>();
  command->add_option("--config,-c", flags->config_path, "The service's configuration file")
      ->type_name("FILE");
  command->add_option("--set", flags->overrides, "section.name=value, stronger than the file")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunDoctor(run, *flags); };
  });
}

}  // namespace vmonce::app
