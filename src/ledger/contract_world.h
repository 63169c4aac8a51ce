// What the contract tests of ports::Ledger share: the adapters they run on, and short ways to make
// submissions and to play a worker. For tests only.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/fake_clock.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "ledger/sqlite_ledger.h"
#include "ports/ledger.h"

namespace vmonce::ledger {

struct World;

struct Adapter {
  const char* name;
  std::unique_ptr<ports::Ledger> (*make)(World&);
};

inline void PrintTo(const Adapter& adapter, std::ostream* out) { *out << adapter.name; }

inline constexpr model::Resources kAmple{10'000, 10'000, 10'000'000, 100'000};
inline const model::ReplicaId kReplica{"r-00000000000000a1"};
inline const model::ReplicaId kOtherReplica{"r-00000000000000b2"};
inline constexpr Milliseconds kTtl{15'000};
inline constexpr Milliseconds kSettle{30'000};

// One ledger with a clock that stands still, and everything a service would know of it.
struct World {
  explicit World(const Adapter& adapter)
      : random(NewSystemRandom()), threads(NewSystemThreads()), logger(NewNullLogger()) {
    ledger = adapter.make(*this);
  }

  TempDir dir;
  FakeClock clock;
  std::unique_ptr<Random> random;
  std::unique_ptr<Threads> threads;
  std::unique_ptr<Logger> logger;
  std::unique_ptr<ports::Ledger> ledger;
  model::ProjectId project{"default"};

  Uuid NewId() {
    // Ids must differ and be ordered although the clock stands still.
    Uuid id = NewUuidV7(clock, *random);
    const std::uint32_t number = ++ids_;
    id.bytes[6] = static_cast<std::uint8_t>(0x70 | (number >> 16 & 0xf));
    id.bytes[7] = static_cast<std::uint8_t>(number >> 8);
    id.bytes[8] = static_cast<std::uint8_t>(0x80 | (number >> 2 & 0x3f));
    id.bytes[9] = static_cast<std::uint8_t>(number & 0x3);
    return id;
  }

  ports::Submission Request(model::OperationKind kind, const std::string& key) {
    ports::Submission submission;
    model::Operation& operation = submission.operation;
    operation.id = model::OperationId{NewId()};
    operation.project = project;
    operation.kind = kind;
    if (!key.empty()) operation.key_hash = Sha256(key);
    operation.key_prefix = key.substr(0, 4);
    operation.fingerprint = Sha256("fingerprint of " + key);
    operation.canonical_request = R"({"body":{"name":"é"},"method":"POST"})";
    operation.intent = R"({"version":1})";
    operation.face = "rest";
    submission.max_backlog = 100'000;
    return submission;
  }

  ports::Submission Create(const std::string& key, const std::vector<std::string>& names) {
    ports::Submission submission = Request(model::OperationKind::kCreate, key);
    submission.operation.sealed_secrets = std::string("\x01\x00sealed", 8);
    ports::CreateVms change;
    change.quota = change.capacity = kAmple;
    for (const std::string& name : names) {
      model::Vm vm;
      vm.id = model::VmId{NewId()};
      vm.project = project;
      vm.name = name;
      vm.operation = submission.operation.id;
      vm.index = static_cast<int>(change.vms.size());
      vm.key_prefix = submission.operation.key_prefix;
      vm.spec.image.name = "tiny";
      vm.spec.image.disk_path = "/images/tiny.qcow2";
      vm.spec.image.disk_format = "qcow2";
      vm.spec.image.aliases = {"latest"};
      vm.spec.disk_gib = 3;
      vm.spec.hostname = name;
      vm.spec.ssh_keys = {"ssh-ed25519 AAAA me"};
      vm.mac = "52:54:00:00:00:01";
      vm.labels = {{"team", "blue \"x\""}};
      change.demand = change.demand + Demand(vm.spec);
      model::Item item;
      item.index = vm.index;
      item.subject = vm.id.value;
      submission.operation.items.push_back(item);
      change.vms.push_back(std::move(vm));
    }
    submission.change = std::move(change);
    return submission;
  }

  ports::Submission OnVm(model::OperationKind kind, const std::string& key, model::VmId vm) {
    ports::Submission submission = Request(kind, key);
    submission.operation.items.emplace_back().subject = vm.value;
    return submission;
  }
  ports::Submission Delete(const std::string& key, model::VmId vm) {
    ports::Submission submission = OnVm(model::OperationKind::kDelete, key, vm);
    submission.change = ports::DeleteVm{vm, std::nullopt};
    return submission;
  }
  ports::Submission Stop(const std::string& key, model::VmId vm) {
    ports::Submission submission = OnVm(model::OperationKind::kStop, key, vm);
    submission.change = ports::PowerVm{vm, model::Desired::kStopped, std::nullopt};
    return submission;
  }
  ports::Submission Rename(const std::string& key, model::VmId vm, const std::string& name) {
    ports::Submission submission = Request(model::OperationKind::kUpdate, key);
    ports::UpdateVm change;
    change.vm = vm;
    change.name = name;
    submission.change = change;
    return submission;
  }

  ports::AcceptOutcome Accept(const ports::Submission& submission) {
    auto outcomes = ledger->Accept(std::span(&submission, 1));
    EXPECT_EQ(outcomes.size(), 1u);
    return std::move(outcomes.front());
  }
  void MustAccept(const ports::Submission& submission) {
    const auto outcome = Accept(submission);
    EXPECT_TRUE(outcome && std::holds_alternative<ports::Accepted>(*outcome));
  }
  // Accepts a create of one VM and answers it.
  model::Vm NewVm(const std::string& key, const std::string& name) {
    auto outcome = Accept(Create(key, {name}));
    EXPECT_TRUE(outcome && std::holds_alternative<ports::Accepted>(*outcome));
    return std::get<ports::Accepted>(*outcome).vms.front();
  }

  // --- A worker
  std::vector<model::Operation> Take(const model::ReplicaId& owner = kReplica, int most = 1000) {
    auto taken = ledger->TakeDue(owner, kTtl, kSettle, most);
    EXPECT_TRUE(taken.has_value());
    return taken.value_or(std::vector<model::Operation>());
  }
  model::Operation TakeOne(const model::ReplicaId& owner = kReplica) {
    auto taken = Take(owner);
    EXPECT_EQ(taken.size(), 1u);
    return taken.empty() ? model::Operation{} : taken.front();
  }
  // An advance that changes nothing yet.
  static ports::Advance Of(const model::Operation& operation) {
    ports::Advance advance;
    advance.lease = operation.CurrentLease();
    advance.items = operation.items;
    return advance;
  }
  ports::AdvanceOutcome Record(const ports::Advance& advance) {
    auto outcome = ledger->Record(advance);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().detail;
    return outcome.value_or(ports::AdvanceOutcome::kLost);
  }
  static ports::VmChange To(model::VmId vm, model::VmState state) {
    ports::VmChange change;
    change.vm = vm;
    change.state = state;
    return change;
  }
  // Takes everything that is due and drives its items through `states`, to `end`.
  void Drive(const std::vector<model::VmState>& states, model::OperationState end,
             std::optional<model::Failure> failure = std::nullopt) {
    for (const model::Operation& operation : Take()) {
      ports::Advance advance = Of(operation);
      advance.failure = failure;
      const bool ends_well = end == model::OperationState::kSucceeded;
      for (model::Item& item : advance.items) {
        item.phase = ends_well ? model::ItemPhase::kDone : model::ItemPhase::kFailed;
        item.failure = failure;
      }
      advance.state = model::OperationState::kRunning;
      for (const model::VmState state : states) {
        advance.changes.clear();
        const bool is_last = state == states.back();
        if (is_last) advance.state = end;
        for (const model::Item& item : advance.items) {
          advance.changes.push_back(To(model::VmId{item.subject}, state));
          const bool gives_back =
              state == model::VmState::kFailed || state == model::VmState::kDeleted;
          advance.changes.back().release_reservation = gives_back;
          advance.changes.back().failure = failure;
        }
        EXPECT_EQ(Record(advance), ports::AdvanceOutcome::kRecorded);
      }
    }
  }
  void MakeReady() {
    Drive({model::VmState::kCreating, model::VmState::kReady}, model::OperationState::kSucceeded);
  }
  void MakeFailed(bool passing) {
    Drive({model::VmState::kCreating, model::VmState::kFailed}, model::OperationState::kFailed,
          model::Failure{"no_capacity", "the host is full", passing});
  }
  void MakeDeleted() {
    Drive({model::VmState::kDeleting, model::VmState::kDeleted}, model::OperationState::kSucceeded);
  }

  model::Vm Vm(model::VmId id) {
    auto vm = ledger->GetVm(id);
    EXPECT_TRUE(vm && *vm);
    return vm && *vm ? **vm : model::Vm{};
  }
  model::Operation Operation(model::OperationId id) {
    auto operation = ledger->GetOperation(id);
    EXPECT_TRUE(operation && *operation);
    return operation && *operation ? **operation : model::Operation{};
  }
  model::Resources Usage() { return ledger->Usage(project).value_or(model::Resources{}); }
  model::Host AddHost(const std::string& id, const model::Resources& capacity) {
    model::Host host;
    host.id.value = id;
    host.uri = "test:///" + id;
    host.capacity = capacity;
    EXPECT_TRUE(ledger->PutHost(host).has_value());
    return host;
  }
  model::Resources ReservedOn(const std::string& id) {
    const auto hosts = ledger->Hosts().value_or(std::vector<model::Host>());
    for (const model::Host& host : hosts) {
      if (host.id.value == id) return host.reserved;
    }
    return {};
  }

 private:
  std::uint32_t ids_ = 0;
};

inline std::unique_ptr<ports::Ledger> OpenSqlite(World& world, const std::string& path) {
  SqliteLedgerOptions options;
  options.path = path;
  options.page_cache_kib = 4096;
  auto ledger =
      SqliteLedger::Open(options, world.clock, *world.random, *world.threads, *world.logger);
  EXPECT_TRUE(ledger.has_value()) << ledger.error().detail;
  return ledger ? std::move(*ledger) : nullptr;
}

inline constexpr Adapter kSqliteFile{
    "SqliteFile", [](World& world) { return OpenSqlite(world, world.dir.File("ledger.db")); }};
inline constexpr Adapter kSqliteMemory{"SqliteMemory",
                                       [](World& world) { return OpenSqlite(world, ""); }};

// Each clause of ports/ledger.h on each adapter.
class LedgerContract : public testing::TestWithParam<Adapter> {
 protected:
  World world{GetParam()};
};

inline auto AllAdapters() { return testing::Values(kSqliteFile, kSqliteMemory); }
inline std::string AdapterName(const testing::TestParamInfo<Adapter>& info) {
  return info.param.name;
}

template <typename Kind>
const Kind* As(const ports::AcceptOutcome& outcome) {
  return outcome ? std::get_if<Kind>(&*outcome) : nullptr;
}
inline std::optional<ports::DeclineReason> WhyDeclined(const ports::AcceptOutcome& outcome) {
  const auto* declined = As<ports::Declined>(outcome);
  if (declined == nullptr) return std::nullopt;
  return declined->reason;
}

}  // namespace vmonce::ledger
