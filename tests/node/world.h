// A whole node in one process and on one thread: the real service, engine, workflows and SQLite
// ledger over a simulated host, with a clock moved by hand and a crash at any port call. What the
// ledger and the host hold outlives a crash.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fake_clock.h"
#include "base/log.h"
#include "base/seal.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "engine/worker.h"
#include "hypervisor/simulated_driver.h"
#include "ledger/sqlite_ledger.h"
#include "service/intake.h"
#include "service/vm_service.h"
#include "service/waiters.h"
#include "workflows/rebuild.h"
#include "workflows/reconcile_vms.h"
#include "workflows/workflows.h"

namespace vmonce::node {

// Thrown through the production code by a port call that was to be the process's last.
struct Crash {};

// Counts port calls and crashes at one of them, before it is made or after.
class CrashPoint {
 public:
  enum class When { kBefore, kAfter };

  void Arm(int call, When when) {
    at_ = calls_ + call;
    when_ = when;
    has_fired_ = false;
  }
  bool has_fired() const { return has_fired_; }
  int calls() const { return calls_; }

  template <typename Call>
  auto Through(Call call) {
    const int number = ++calls_;
    if (number == at_ && when_ == When::kBefore) Fire();
    auto result = call();
    if (number == at_ && when_ == When::kAfter) Fire();
    return result;
  }

 private:
  [[noreturn]] void Fire() {
    has_fired_ = true;
    at_ = 0;
    throw Crash{};  // tidy: allow throw: a crash ends the call, and nothing in production relies on
                    // unwinding
  }

  int calls_ = 0;
  int at_ = 0;
  When when_ = When::kBefore;
  bool has_fired_ = false;
};

// Faults for chosen calls, each for a number of times; and counts how often they fired.
class ChosenFaults final : public hypervisor::FaultPlan {
 public:
  // `vm` absent: for whichever VM the call is about.
  void Add(hypervisor::SimulatedCall call, hypervisor::Fault fault, int times = 1,
           std::optional<model::VmId> vm = std::nullopt) {
    faults_.push_back({call, std::move(fault), times, vm});
  }
  void Clear() { faults_.clear(); }
  int fired() const { return fired_; }
  hypervisor::Fault Next(hypervisor::SimulatedCall call,
                         const std::optional<model::VmId>& vm) override;
  // Runs at the start of every call of this kind.
  void OnCall(hypervisor::SimulatedCall call, std::function<void()> what) {
    on_call_ = {call, std::move(what)};
  }

 private:
  struct Chosen {
    hypervisor::SimulatedCall call;
    hypervisor::Fault fault;
    int times;
    std::optional<model::VmId> vm;
  };
  std::vector<Chosen> faults_;
  int fired_ = 0;
  std::optional<std::pair<hypervisor::SimulatedCall, std::function<void()>>> on_call_;
};

struct WorldOptions {
  model::Resources quota{.vms = 100, .cpus = 100, .memory_mib = 100'000, .disk_gib = 1000};
  model::Resources capacity{.vms = 100, .cpus = 100, .memory_mib = 100'000, .disk_gib = 1000};
  Milliseconds settle{0};
  Milliseconds orphan_grace{60'000};
  // The first one is what host(), Reconcile() and the crashes of most plays are about.
  std::vector<std::string> hosts{"local"};
  model::RetentionPolicy retention;
  model::PortRange forward_ports{20'000, 20'099};
  std::vector<std::string> networks;
  // Zero: a record after every step. Otherwise, since the clock stands still, one for all of them.
  Milliseconds record_within{0};
  bool has_ledger_file = false;  // Can be copied, restored and lost.
};

class World {
 public:
  explicit World(WorldOptions options = {});
  ~World();

  // One create as a face would hand it over; the answer after the intake has run.
  service::Outcome Create(const std::string& key, const std::string& name, int count = 1);
  service::Outcome Create(const std::string& key, const model::CreateIntent& intent);
  service::Outcome Change(service::ChangeRequest::Kind kind, const model::VmId& vm,
                          std::optional<std::string> key = std::nullopt);
  service::Outcome Update(const model::VmId& vm, std::optional<model::Desired> desired,
                          std::optional<model::RestartPolicy> restart,
                          std::optional<std::string> key = std::nullopt);
  service::Outcome ForceStop(const model::VmId& vm);
  service::Outcome Cancel(const model::OperationId& operation);

  // Works until nothing is due within `horizon`, moving the clock to what is due next. A crash ends
  // the process, and a new one goes on (at most `restarts` times, CHECK).
  void RunUntilQuiet(Milliseconds horizon = Milliseconds(120'000), int restarts = 3);
  // One operation, without moving the clock. False: nothing was due.
  bool Step();
  // A new process on the same ledger and host; its first connection to the host must, or may not,
  // succeed.
  void Restart();
  Status TryRestart();
  workflows::LedgerAge Age() const;

  // Of a ledger in a file. After the last two no service runs: Rebuild() or TryRestart() follows.
  void KeepCopy();
  void RestoreCopy();
  void LoseLedger();
  // As `vmonce rebuild` does, with a crash at any call that writes; the service is not running
  // then.
  Result<workflows::RebuildReport> Rebuild(const workflows::RebuildOptions& options = {});

  workflows::ReconcileReport Reconcile();
  workflows::ReconcileReport Reconcile(const std::string& host);
  // As an operator would.
  Status Declare(const std::string& host, model::HostState state);
  workflows::HostStatus StatusOf(const std::string& host) const;
  void Advance(Milliseconds by) { clock_.Advance(by); }
  void SetQuota(const model::Resources& quota);
  // Whose requests follow.
  void SetProject(const std::string& name) { project_ = {name}; }

  model::Vm VmRow(const model::VmId& id);
  model::Operation OperationRow(const model::OperationId& id);
  std::vector<std::string> Timeline(const model::OperationId& id);

  ports::SweepCounts SweepLedger();

  // Invariants that must hold whenever nothing is in flight: usage equals what rows hold, every
  // domain and volume is wanted by a row, no reservation without a machine. Answers what is broken,
  // or nothing.
  std::string Audit();

  CrashPoint& crash() { return crash_; }
  ChosenFaults& faults() { return *faults_.front(); }
  hypervisor::SimulatedHost& host() { return *hosts_.front(); }
  hypervisor::SimulatedHost& host(const std::string& id);
  // For calls to that host alone; faults() is for the first one's.
  ChosenFaults& faults(const std::string& host);
  ports::Ledger& ledger() { return *ledger_; }
  Clock& clock() { return clock_; }

 private:
  struct Process;
  Status Boot();
  void OpenLedger(const model::LedgerId& become = {});
  void CloseLedger();
  void AddHosts(workflows::Fleet& fleet);
  // Runs the intake until it has answered.
  service::Outcome AnswerTo(const std::function<void(service::Done)>& ask);
  service::Outcome Change(service::ChangeRequest request);

  const WorldOptions options_;
  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<Random> random_;
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<Logger> logger_;
  model::Resources quota_;
  model::ProjectId project_{"default"};
  CrashPoint crash_;
  std::string AuditHost(const hypervisor::SimulatedHost& host, int wanted) const;
  std::size_t PlaceOf(const std::string& host) const;

  // In the order of options_.hosts.
  std::vector<std::shared_ptr<ChosenFaults>> faults_;
  std::vector<std::shared_ptr<hypervisor::SimulatedHost>> hosts_;
  std::unique_ptr<ledger::SqliteLedger> ledger_;
  std::unique_ptr<ports::Ledger> crashing_ledger_;
  std::unique_ptr<Process> process_;
};

}  // namespace vmonce::node
