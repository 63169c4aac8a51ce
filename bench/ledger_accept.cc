// How many creates a second the SQLite ledger accepts, in batches, beside how many 4 KiB appends
// the same disk makes durable: `ledger_accept DIRECTORY [CREATES]`. Keys and ids are random, events
// none, one caller. Only the ratio to the disk's figure, taken in the same run, means anything.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/system.h"
#include "base/unique_fd.h"
#include "ledger/sqlite_ledger.h"

namespace vmonce {
namespace {

double Seconds(Instant from, Instant to) {
  return std::chrono::duration<double>(to - from).count();
}

double DurableAppendsPerSecond(const std::string& directory, Clock& clock) {
  const std::string path = directory + "/append";
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  CHECK(file.IsOpen());
  const std::array<char, 4096> block{};
  constexpr int kAppends = 1000;
  const Instant begin = clock.Monotonic();
  for (int i = 0; i < kAppends; ++i) {
    CHECK(write(file.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size()));
    CHECK(fdatasync(file.get()) == 0);
  }
  const double rate = kAppends / Seconds(begin, clock.Monotonic());
  std::filesystem::remove(path);
  return rate;
}

ports::Submission NewCreate(Clock& clock, Random& random) {
  ports::Submission submission;
  model::Operation& operation = submission.operation;
  operation.id.value = NewUuidV7(clock, random);
  operation.project.value = "default";
  Digest key{};
  random.Fill(std::as_writable_bytes(std::span(key)));
  operation.key_hash = key;
  operation.key_prefix = "0190abc…";
  operation.fingerprint = key;
  operation.canonical_request =
      R"({"body":{"cpus":2,"disk_gib":10,"image":"debian-12","memory_mib":2048,"name":"web-01",)"
      R"("ssh_keys":["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKL)"
      R"(sabgH5C9okWi0dh2l9GKJl"]},)"
      R"("method":"POST","query":[],"route":"/v1/vms"})";
  operation.intent = operation.canonical_request;
  operation.face = "rest";
  submission.max_backlog = 1'000'000'000;
  ports::CreateVms change;
  change.quota = change.capacity = {1'000'000'000, 1'000'000'000, 1LL << 50, 1LL << 50};
  model::Vm vm;
  vm.id.value = NewUuidV7(clock, random);
  vm.project = operation.project;
  vm.name = fmt::format("vm-{:016x}", random.Next());
  vm.operation = operation.id;
  vm.key_prefix = operation.key_prefix;
  vm.spec.image.name = "debian-12";
  vm.spec.image.disk_path = "/var/lib/vmonce/images/debian-12-genericcloud-amd64.qcow2";
  vm.spec.image.disk_format = "qcow2";
  vm.spec.hostname = vm.name;
  vm.spec.ssh_keys = {
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"};
  vm.mac = "52:54:00:12:34:56";
  operation.items.emplace_back().subject = vm.id.value;
  change.vms.push_back(std::move(vm));
  submission.change = std::move(change);
  return submission;
}

struct Machine {
  std::unique_ptr<Clock> clock = NewSystemClock();
  std::unique_ptr<Random> random = NewSystemRandom();
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Logger> logger = NewNullLogger();
};

double CreatesPerSecond(Machine& machine, const std::string& directory, std::size_t batch_size,
                        int creates) {
  const std::string folder = directory + "/ledger";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  ledger::SqliteLedgerOptions options;
  options.path = folder + "/ledger.db";
  auto ledger = ledger::SqliteLedger::Open(options, *machine.clock, *machine.random,
                                           *machine.threads, *machine.logger);
  CHECK_MSG(ledger.has_value(), ledger.error().detail);
  double seconds = 0;
  for (int done = 0; done < creates; done += static_cast<int>(batch_size)) {
    std::vector<ports::Submission> batch;
    for (std::size_t i = 0; i < batch_size; ++i) {
      batch.push_back(NewCreate(*machine.clock, *machine.random));
    }
    const Instant begin = machine.clock->Monotonic();
    const auto outcomes = (*ledger)->Accept(batch);
    seconds += Seconds(begin, machine.clock->Monotonic());
    for (const auto& outcome : outcomes) {
      CHECK(outcome && std::holds_alternative<ports::Accepted>(*outcome));
    }
  }
  ledger->reset();
  std::filesystem::remove_all(folder);
  return creates / seconds;
}

int Run(const std::string& directory, int creates) {
  Machine machine;
  for (const std::size_t batch_size : {1UL, 64UL, 256UL}) {
    const double appends = DurableAppendsPerSecond(directory, *machine.clock);
    const int count = batch_size == 1 ? creates / 20 : creates;
    const double rate = CreatesPerSecond(machine, directory, batch_size, count);
    fmt::print("batch {:>3}: {:>6.0f} creates/s, {:>5.0f} durable appends/s, ratio {:.2f}\n",
               batch_size, rate, appends, rate / appends);
  }
  return 0;
}

}  // namespace
}  // namespace vmonce

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} DIRECTORY [CREATES]\n", argv[0]);
    return 2;
  }
  return vmonce::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 50'000);
}
