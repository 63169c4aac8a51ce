#include "app/offline_rebuild.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "app/node_hosts.h"
#include "ledger/sqlite_ledger.h"
#include "workflows/rebuild.h"

namespace vmonce::app {
namespace {

namespace json = boost::json;

constexpr std::string_view kLedgerDigits = "0123456789abcdef";
constexpr std::size_t kLedgerIdDigits = 12;

// Each outlives those below it.
struct RebuildRoom {
  std::unique_ptr<Logger> logger;
  std::unique_ptr<ledger::SqliteLedger> ledger;
  std::vector<hypervisor::HostThreads*> doors;  // Of the fleet.
  std::unique_ptr<workflows::Fleet> fleet;
};

// The ids that the hosts' markers show. A host that does not answer has none here; that it does not
// is told later.
std::set<std::string> LedgersOn(const HostDoors& doors) {
  std::set<std::string> ids;
  for (const auto& door : doors) {
    const auto marker = door->ReadMarker();
    if (marker && marker->has_value()) ids.insert((*marker)->ledger.value);
  }
  return ids;
}

std::expected<model::LedgerId, ExitCode> ChooseLedger(const Invocation& run,
                                                      const RebuildFlags& flags,
                                                      const HostDoors& doors) {
  if (!flags.ledger_id.empty()) return model::LedgerId{flags.ledger_id};
  const std::set<std::string> ids = LedgersOn(doors);
  if (ids.size() == 1) return model::LedgerId{*ids.begin()};
  if (ids.empty()) {
    return std::unexpected(RefuseOffline(
        run, "no host that answers carries a marker: nothing tells which ledger was lost",
        "name the configuration of the service that was lost with --config; where no host was ever "
        "used, start the service"));
  }
  std::string all;
  for (const std::string& id : ids) all += (all.empty() ? "" : ", ") + id;
  return std::unexpected(
      RefuseOffline(run, "the hosts carry markers of several ledgers: " + all,
                    "say which one this is with --ledger-id, and leave the others' hosts out of "
                    "the configuration"));
}

std::expected<std::unique_ptr<ledger::SqliteLedger>, ExitCode> OpenAs(
    const Invocation& run, Logger& logger, const std::string& path, const model::LedgerId& become) {
  ledger::SqliteLedgerOptions options;
  options.path = path;
  options.become = become;
  auto opened = ledger::SqliteLedger::Open(options, run.world.clock, run.world.random,
                                           run.world.threads, logger);
  if (opened) return std::move(*opened);
  return std::unexpected(RefuseOffline(run, opened.error().detail,
                                       "stop the service first, and start it again afterwards"));
}

bool IsFresh(ports::Ledger& ledger) {
  const auto totals = ledger.Totals();
  const auto hosts = ledger.Hosts();
  return totals && hosts && totals->last_sequence == 0 && hosts->empty();
}

// The ledger that is there; a new one of the lost ledger's id where there is none, or one that a
// start after the loss has made and that holds nothing. A dry run writes no file.
std::expected<std::unique_ptr<ledger::SqliteLedger>, ExitCode> OpenOrMake(const Invocation& run,
                                                                          const RebuildFlags& flags,
                                                                          const Config& config,
                                                                          Logger& logger,
                                                                          const HostDoors& doors) {
  const std::string path = config.state.LedgerPath();
  std::error_code failed;
  const bool is_there = std::filesystem::exists(path, failed);
  if (is_there) {
    auto ledger = OpenAs(run, logger, path, {});
    if (!ledger || !IsFresh(**ledger)) return ledger;
  }
  const auto id = ChooseLedger(run, flags, doors);
  if (!id) return std::unexpected(id.error());
  run.messages.Say(fmt::format("the ledger {} holds nothing: {} is made anew", path, id->value));
  return OpenAs(run, logger, flags.is_dry_run ? std::string() : path, *id);
}

std::optional<ExitCode> WhyNotThese(const Invocation& run, const RebuildFlags& flags,
                                    RebuildRoom& room) {
  std::set<std::string> hosts;
  for (const model::HostId& id : room.fleet->Ids()) hosts.insert(id.value);
  const auto rows = room.ledger->Hosts();
  if (rows) {
    for (const model::Host& row : *rows) hosts.insert(row.id.value);
  }
  for (const std::string& host : flags.without) {
    if (hosts.contains(host)) continue;
    run.messages.Say(fmt::format("error: --without {}: there is no host of that id", host));
    return ExitCode::kUsage;
  }
  if (flags.ledger_id.empty() || flags.ledger_id == room.ledger->Id().value) return std::nullopt;
  return RefuseOffline(
      run,
      fmt::format("the ledger there is {}, and not {}", room.ledger->Id().value, flags.ledger_id),
      "move its file away, or leave --ledger-id out");
}

json::array TextArray(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

json::object ReportJson(const workflows::RebuildReport& report, const RebuildFlags& flags,
                        const model::LedgerId& ledger) {
  json::array unread;
  for (const model::HostId& id : report.unread) unread.emplace_back(id.value);
  return {{"ledger", ledger.value},
          {"dry_run", flags.is_dry_run},
          {"machines", report.machines},
          {"vms_added", report.vms},
          {"operations_added", report.operations},
          {"creates_resumed", report.handed_back},
          {"creates_given_up", report.given_up},
          {"accept_number", report.newest},
          {"unread_hosts", std::move(unread)},
          {"told", TextArray(report.told)},
          {"open", TextArray(report.open)}};
}

ExitCode Tell(const Invocation& run, const RebuildFlags& flags, const RebuildRoom& room,
              const workflows::RebuildReport& report) {
  for (const std::string& line : report.told) run.messages.Say(line);
  for (const std::string& line : report.open) run.messages.Say("error: " + line);
  json::object object = ReportJson(report, flags, room.ledger->Id());
  const bool is_table = run.globals.format == OutputFormat::kTable;
  // Said already, a line each.
  if (is_table) {
    object.erase("told");
    object.erase("open");
  }
  PrintOne(run.world.terminal, run.globals.format, object);
  if (report.IsWhole()) {
    run.messages.Say(flags.is_dry_run ? "nothing was written: leave --dry-run out to do it"
                                      : "the ledger is whole: start the service");
    return ExitCode::kDone;
  }
  std::string hosts;
  for (const model::HostId& id : report.unread) hosts += (hosts.empty() ? "" : ", ") + id.value;
  run.messages.Say("not whole: " + hosts +
                   " stay unread; the service answers known keys, takes no "
                   "create, and does nothing there");
  run.messages.Say(report.open.empty()
                       ? "  repair: run this again when they answer, or declare them dead: `vmonce "
                         "host dead ID`"
                       : "  repair: remove the machine that is not wanted (virsh), then run this "
                         "again");
  return ExitCode::kFailed;
}

ExitCode Run(const Invocation& run, const RebuildFlags& flags, RebuildRoom& room) {
  if (const auto why = WhyNotThese(run, flags, room)) return *why;
  const Milliseconds settle = room.fleet->SettleTime();
  if (!flags.is_dry_run && settle.count() > 0) {
    run.messages.Say(fmt::format("waiting {} s: calls of a service that died may still take effect",
                                 settle.count() / 1'000));
    run.world.threads.SleepFor(settle, run.world.stop);
    if (run.world.stop.stop_requested()) return ExitCode::kDetached;
  }
  workflows::RebuildOptions options;
  for (const std::string& host : flags.without) options.without.insert({host});
  options.is_dry_run = flags.is_dry_run;
  options.run_stopped = flags.run_stopped;
  workflows::Rebuild rebuild(
      {*room.ledger, *room.ledger, *room.ledger, *room.fleet, run.world.clock, run.world.random});
  const auto report = rebuild.Run(options);
  if (report) return Tell(run, flags, room, *report);
  return RefuseOffline(
      run, report.error().detail,
      "make it answer and run this again. Or leave it out (--without ID): known keys are answered "
      "then, and no create is taken until it was read, or declared dead for good");
}

}  // namespace

ExitCode RebuildOffline(const Invocation& run, const RebuildFlags& flags) {
  const bool is_id = flags.ledger_id.size() == kLedgerIdDigits &&
                     flags.ledger_id.find_first_not_of(kLedgerDigits) == std::string::npos;
  if (!flags.ledger_id.empty() && !is_id) {
    run.messages.Say("error: --ledger-id is 12 digits of 0-9 and a-f");
    return ExitCode::kUsage;
  }
  const auto config = ReadOfflineConfig(run, flags.offline, "rebuild");
  if (!config) return config.error();
  RebuildRoom room;
  room.logger = NewStderrLogger(run.world.clock, LogLevel::kWarning);
  auto doors =
      MakeHostDoors(*config, {run.world.clock, run.world.random, run.world.threads, *room.logger});
  if (!doors) return RefuseOffline(run, doors.error().detail, "mend the configuration");
  auto ledger = OpenOrMake(run, flags, *config, *room.logger, *doors);
  if (!ledger) return ledger.error();
  room.ledger = std::move(*ledger);
  room.fleet = std::make_unique<workflows::Fleet>(*room.ledger, run.world.threads, *room.logger);
  for (std::size_t i = 0; i < doors->size(); ++i) {
    room.doors.push_back((*doors)[i].get());
    room.fleet->Add(HostPlanOf(config->hosts[i]), std::move((*doors)[i]));
  }
  const ExitCode code = Run(run, flags, room);
  // A call to a hung hypervisor cannot be ended, and owns what it touches until the process does.
  const bool is_out = std::ranges::any_of(
      room.doors, [](const hypervisor::HostThreads* door) { return door->AnyOut(); });
  if (is_out) _exit(static_cast<int>(code));
  return code;
}

}  // namespace vmonce::app
