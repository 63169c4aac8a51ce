// The SQLite ledger on its own: how many creates it accepts, and a ledger with a past.
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>

#include "base/check.h"
#include "base/system.h"
#include "bench/commands.h"
#include "bench/samples.h"
#include "ledger/sqlite_ledger.h"

namespace vmonce::bench {
namespace {

constexpr std::size_t kFillBatch = 1000;

struct Machine {
  std::unique_ptr<Clock> clock = NewSystemClock();
  std::unique_ptr<Random> random = NewSystemRandom();
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Logger> logger = NewNullLogger();
};

std::unique_ptr<ledger::SqliteLedger> OpenLedger(Machine& machine, const std::string& path) {
  ledger::SqliteLedgerOptions options;
  options.path = path;
  auto ledger = ledger::SqliteLedger::Open(options, *machine.clock, *machine.random,
                                           *machine.threads, *machine.logger);
  CHECK_MSG(ledger.has_value(), ledger.error().detail);
  return std::move(*ledger);
}

model::Vm NewVm(Machine& machine, const model::Operation& operation) {
  model::Vm vm;
  vm.id.value = NewUuidV7(*machine.clock, *machine.random);
  vm.project = operation.project;
  vm.name = fmt::format("vm-{:016x}", machine.random->Next());
  vm.operation = operation.id;
  vm.key_prefix = operation.key_prefix;
  vm.spec.image.name = "debian-12";
  vm.spec.image.disk_path = "/var/lib/vmonce/images/debian-12-genericcloud-amd64.qcow2";
  vm.spec.image.disk_format = "qcow2";
  vm.spec.cpus = 2;
  vm.spec.memory_mib = 512;
  vm.spec.disk_gib = 10;
  vm.spec.hostname = vm.name;
  vm.spec.ssh_keys = {
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bench"};
  vm.mac = "52:54:00:12:34:56";
  vm.holder = operation.id;
  return vm;
}

// As the service makes it of a create over REST.
ports::Submission NewCreate(Machine& machine) {
  ports::Submission submission;
  model::Operation& operation = submission.operation;
  operation.id.value = NewUuidV7(*machine.clock, *machine.random);
  operation.project.value = "default";
  Digest key{};
  machine.random->Fill(std::as_writable_bytes(std::span(key)));
  operation.key_hash = key;
  operation.key_prefix = "0190abc…";
  operation.fingerprint = key;
  operation.face = "rest";
  const model::Vm vm = NewVm(machine, operation);
  const std::string body =
      fmt::format(R"({{"cpus":2,"disk_gib":10,"image":"debian-12","memory_mib":512,"name":"{}",)"
                  R"("ssh_keys":["{}"]}})",
                  vm.name, vm.spec.ssh_keys.front());
  operation.canonical_request =
      fmt::format(R"({{"body":{},"method":"POST","query":[],"route":"/v1/vms"}})", body);
  operation.intent = body;
  operation.items.emplace_back().subject = vm.id.value;
  submission.max_backlog = 1'000'000'000;
  ports::CreateVms change;
  change.quota = change.capacity = {1'000'000'000, 1'000'000'000, 1LL << 50, 1LL << 50};
  change.demand = Demand(vm.spec);
  change.vms.push_back(vm);
  submission.change = std::move(change);
  model::Event& accepted = submission.events.emplace_back();
  accepted.id = NewUuidV7(*machine.clock, *machine.random);
  accepted.type = "operation.accepted";
  accepted.project = operation.project;
  accepted.subject = ToString(operation.id);
  accepted.data = fmt::format(R"({{"operation":"{}","kind":"create"}})", accepted.subject);
  return submission;
}

// The seconds that it took; what is made before does not count.
double AcceptBatch(Machine& machine, ledger::SqliteLedger& ledger, std::size_t size) {
  std::vector<ports::Submission> batch;
  for (std::size_t i = 0; i < size; ++i) batch.push_back(NewCreate(machine));
  const Instant begin = machine.clock->Monotonic();
  const auto outcomes = ledger.Accept(batch);
  const double seconds = SecondsBetween(begin, machine.clock->Monotonic());
  for (const auto& outcome : outcomes) {
    CHECK(outcome && std::holds_alternative<ports::Accepted>(*outcome));
  }
  return seconds;
}

// Ends every create of the ledger, and deletes all VMs but the newest `live`.
void EndAll(const std::string& path, std::int64_t count, std::int64_t live) {
  sqlite3* db = nullptr;
  CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  const std::string sql = fmt::format(
      "PRAGMA journal_mode = WAL; BEGIN;"
      "UPDATE operations SET state = 'succeeded', finished_ms = updated_ms;"
      "UPDATE vms SET state = 'deleted', deleted_ms = updated_ms, holds_reservation = 0,"
      " holder = NULL, observed = 'absent'"
      " WHERE operation IN (SELECT id FROM operations WHERE sequence <= {0});"
      "UPDATE vms SET state = 'ready', observed = 'running', holder = NULL"
      " WHERE deleted_ms IS NULL;"
      "UPDATE usage SET vms = {1}, cpus = 2 * {1}, memory_mib = 512 * {1}, disk_gib = 10 * {1};"
      "UPDATE totals SET vms = {1}, cpus = 2 * {1}, memory_mib = 512 * {1}, disk_gib = 10 * {1},"
      " unfinished = 0, succeeded = {2};"
      "COMMIT; PRAGMA wal_checkpoint(TRUNCATE);",
      count - live, live, count);
  CHECK_MSG(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
            sqlite3_errmsg(db));
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

}  // namespace

void MeasureAccept(const Arguments& arguments) {
  Machine machine;
  const std::string folder = arguments.Text("dir") + "/accept";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto size = static_cast<std::size_t>(arguments.Number("batch"));
  const std::int64_t count = arguments.Number("count");
  auto ledger = OpenLedger(machine, folder + "/ledger.db");
  double seconds = 0;
  std::int64_t done = 0;
  for (; done < count; done += static_cast<std::int64_t>(size)) {
    seconds += AcceptBatch(machine, *ledger, size);
  }
  fmt::print("{{\"rate\":{:.1f},\"count\":{}}}\n", static_cast<double>(done) / seconds, done);
  ledger.reset();
  std::filesystem::remove_all(folder);
}

void FillLedger(const Arguments& arguments) {
  Machine machine;
  const std::string path = arguments.Text("dir") + "/ledger.db";
  const std::int64_t count = arguments.Number("count");
  const Instant begin = machine.clock->Monotonic();
  {
    auto ledger = OpenLedger(machine, path);
    for (std::int64_t done = 0; done < count; done += kFillBatch) {
      AcceptBatch(machine, *ledger, kFillBatch);
    }
  }
  EndAll(path, count, arguments.Number("live"));
  fmt::print("{{\"count\":{},\"seconds\":{:.1f}}}\n", count,
             SecondsBetween(begin, machine.clock->Monotonic()));
}

}  // namespace vmonce::bench
