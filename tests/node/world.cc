#include "tests/node/world.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.h"
#include "model/label.h"
#include "model/limits.h"
#include "tests/node/crashing.h"

namespace vmonce::node {
namespace {

constexpr Milliseconds kTtl{15'000};

model::Image TinyImage() {
  model::Image image;
  image.name = "tiny";
  image.kind = model::ImageKind::kDisk;
  image.disk_path = "/images/tiny.qcow2";
  image.disk_format = "qcow2";
  return image;
}

// What app/node says of it, in short.
std::optional<model::Problem> ClosedBy(const workflows::Fleet& fleet, workflows::LedgerAge age) {
  if (fleet.Age() != age) return std::nullopt;
  model::Problem problem;
  problem.code = "ledger_behind";
  return problem;
}

class NoObserver final : public engine::WorkObserver {
 public:
  void StepTried(model::OperationKind, std::string_view, std::string_view, Milliseconds) override {}
  void OperationEnded(const model::Operation&) override {}
};

}  // namespace

hypervisor::Fault ChosenFaults::Next(hypervisor::SimulatedCall call,
                                     const std::optional<model::VmId>& vm) {
  if (on_call_ && on_call_->first == call) on_call_->second();
  for (Chosen& chosen : faults_) {
    if (chosen.call != call || chosen.times == 0) continue;
    if (chosen.vm && chosen.vm != vm) continue;
    --chosen.times;
    ++fired_;
    return chosen.fault;
  }
  return {};
}

// What dies with a crash.
struct World::Process {
  Process(World& world, int number)
      : replica{fmt::format("r-{:016x}", number)},
        fleet(*world.crashing_ledger_, *world.threads_, *world.logger_),
        sealer(std::string(32, 'k'), *world.random_),
        workflow_parts{*world.crashing_ledger_,
                       fleet,
                       sealer,
                       world.clock_,
                       *world.random_,
                       {Milliseconds(20'000), Milliseconds(200), Milliseconds(3'000)}},
        sagas(workflows::AllSagas(workflow_parts)),
        leases(*world.crashing_ledger_, world.clock_, *world.threads_, *world.logger_,
               {kTtl, Milliseconds(5'000)}),
        worker_parts{*world.crashing_ledger_,
                     sagas,
                     leases,
                     observer,
                     world.clock_,
                     *world.random_,
                     *world.logger_,
                     replica,
                     {{model::limits::kStepBackoffBase, model::limits::kStepBackoffCap},
                      model::limits::kHeldRetry,
                      world.options_.settle,
                      model::limits::kStepFailures,
                      model::limits::kUndoFailuresStuck,
                      world.options_.record_within}},
        worker(worker_parts),
        // No workers: nothing is leased at acceptance, and Step() runs what is due.
        pool(worker_parts, *world.threads_, {0, Milliseconds(500), world.options_.settle}),
        intake(*world.crashing_ledger_, pool, model::ReplicaId{"r-ffffffffffffffff"}, kTtl,
               world.clock_, *world.threads_, *world.logger_, {64, 1024}),
        waiters(world.clock_, *world.threads_),
        images(*world.threads_, {TinyImage()}),
        service({*world.crashing_ledger_, intake, waiters, pool, images, sealer, world.clock_,
                 *world.random_, *world.threads_, *world.logger_,
                 [&world] { return Result<model::Resources>(world.options_.capacity); }, replica,
                 [this] { return ClosedBy(fleet, workflows::LedgerAge::kBehind); },
                 [this](const model::VmSpec& spec) { return fleet.WhyNotOffered(spec); },
                 [this] { return ClosedBy(fleet, workflows::LedgerAge::kPartly); }},
                {service::Quotas(service::ProjectQuota{world.quota_}), 1000,
                 std::chrono::seconds(120), world.options_.retention}),
        reconciler(workflow_parts, *world.logger_,
                   {world.options_.orphan_grace, kTtl + world.options_.settle, 2, 3, 10}) {}

  model::ReplicaId replica;
  NoObserver observer;
  workflows::Fleet fleet;
  Sealer sealer;
  workflows::WorkflowParts workflow_parts;
  engine::SagaTable sagas;
  engine::LeaseKeeper leases;
  engine::WorkerParts worker_parts;
  engine::Worker worker;
  engine::WorkerPool pool;
  service::Intake intake;
  service::Waiters waiters;
  service::ImageCatalog images;
  service::VmService service;
  workflows::ReconcileVms reconciler;
};

World::World(WorldOptions options)
    : options_(options),
      random_(NewSystemRandom()),
      threads_(NewSystemThreads()),
      logger_(NewNullLogger()),
      quota_(options.quota) {
  for (std::size_t i = 0; i < options_.hosts.size(); ++i) {
    faults_.push_back(std::make_shared<ChosenFaults>());
    hosts_.push_back(std::make_shared<hypervisor::SimulatedHost>(hypervisor::SimulatedOptions{},
                                                                 clock_, *threads_));
  }
  OpenLedger();
  Restart();
}

World::~World() = default;

void World::OpenLedger(const model::LedgerId& become) {
  ledger::SqliteLedgerOptions ledger_options;
  ledger_options.has_checkpoint_thread = false;
  if (options_.has_ledger_file) ledger_options.path = dir_.path() + "/ledger.db";
  ledger_options.become = become;
  auto opened = ledger::SqliteLedger::Open(ledger_options, clock_, *random_, *threads_, *logger_);
  CHECK_MSG(opened.has_value(), opened ? "" : opened.error().detail);
  ledger_ = std::move(*opened);
  crashing_ledger_ = std::make_unique<CrashingLedger>(*ledger_, crash_);
}

void World::CloseLedger() {
  CHECK(options_.has_ledger_file);
  process_.reset();
  crashing_ledger_.reset();
  ledger_.reset();
}

void World::KeepCopy() {
  CloseLedger();
  namespace fs = std::filesystem;
  fs::copy_file(dir_.path() + "/ledger.db", dir_.path() + "/copy.db",
                fs::copy_options::overwrite_existing);
  OpenLedger();
  Restart();
}

void World::RestoreCopy() {
  CloseLedger();
  namespace fs = std::filesystem;
  fs::copy_file(dir_.path() + "/copy.db", dir_.path() + "/ledger.db",
                fs::copy_options::overwrite_existing);
  OpenLedger();
}

void World::LoseLedger() {
  const model::LedgerId id = ledger_->Id();
  CloseLedger();
  std::filesystem::remove(dir_.path() + "/ledger.db");
  OpenLedger(id);
}

Result<workflows::RebuildReport> World::Rebuild(const workflows::RebuildOptions& options) {
  process_.reset();
  workflows::Fleet fleet(*crashing_ledger_, *threads_, *logger_);
  AddHosts(fleet);
  CrashingRows rows(*ledger_, crash_);
  workflows::Rebuild rebuild({*crashing_ledger_, rows, *ledger_, fleet, clock_, *random_});
  return rebuild.Run(options);
}

Status World::Boot() {
  process_ = std::make_unique<Process>(*this, static_cast<int>(random_->Below(1 << 30)));
  AddHosts(process_->fleet);
  Status first;
  for (const std::string& id : options_.hosts) {
    const Status connected = process_->fleet.Connect(model::HostId{id});
    const Result<bool> is_dead = process_->fleet.IsDead(model::HostId{id});
    const bool is_expected = is_dead && *is_dead;
    if (first && !is_expected) first = connected;
  }
  return first;
}

void World::AddHosts(workflows::Fleet& fleet) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    auto driver = std::make_unique<hypervisor::SimulatedDriver>(
        hosts_[i], faults_[i], hypervisor::SimulatedDriverOptions{Milliseconds(0), options_.settle},
        clock_, *threads_);
    fleet.Add({model::HostId{options_.hosts[i]},
               "simulated:", workflows::CapacityPlan::Of(options_.capacity), options_.forward_ports,
               "127.0.0.1", options_.networks},
              std::make_unique<CrashingHypervisor>(std::move(driver), crash_));
  }
}

std::size_t World::PlaceOf(const std::string& host) const {
  const auto found = std::ranges::find(options_.hosts, host);
  CHECK(found != options_.hosts.end());
  return static_cast<std::size_t>(found - options_.hosts.begin());
}

hypervisor::SimulatedHost& World::host(const std::string& id) { return *hosts_[PlaceOf(id)]; }
ChosenFaults& World::faults(const std::string& host) { return *faults_[PlaceOf(host)]; }

Status World::Declare(const std::string& host, model::HostState state) {
  return process_->fleet.SetState(model::HostId{host}, state);
}

workflows::HostStatus World::StatusOf(const std::string& host) const {
  return process_->fleet.StatusOf(model::HostId{host});
}

void World::Restart() {
  const Status connected = TryRestart();
  CHECK_MSG(connected.has_value(), connected ? "" : connected.error().detail);
}

Status World::TryRestart() {
  process_.reset();
  return Boot();
}

workflows::LedgerAge World::Age() const { return process_->fleet.Age(); }

void World::SetQuota(const model::Resources& quota) {
  quota_ = quota;
  Restart();
}

service::Outcome World::Create(const std::string& key, const std::string& name, int count) {
  model::CreateIntent intent;
  intent.name = name;
  intent.image = "tiny";
  intent.count = count;
  return Create(key, intent);
}

service::Outcome World::Create(const std::string& key, const model::CreateIntent& intent) {
  service::CreateRequest request;
  request.asked.caller.project = project_;
  request.asked.key = model::IdempotencyKey{key};
  request.asked.request.method = "POST";
  request.asked.request.route = "/v1/vms";
  request.asked.request.body = boost::json::parse(model::Serialise(intent));
  request.asked.redacted = request.asked.request;
  request.asked.face = "rest";
  request.intent = intent;
  request.user_data = "#cloud-config\n";
  return AnswerTo(
      [&](service::Done done) { process_->service.Create(std::move(request), std::move(done)); });
}

service::Outcome World::AnswerTo(const std::function<void(service::Done)>& ask) {
  std::optional<service::Outcome> answer;
  ask([&answer](service::Outcome outcome) { answer = std::move(outcome); });
  while (!answer && process_->intake.RunOnce()) {
  }
  CHECK_MSG(answer.has_value(), "no answer");
  return std::move(*answer);
}

service::Outcome World::Change(service::ChangeRequest::Kind kind, const model::VmId& vm,
                               std::optional<std::string> key) {
  service::ChangeRequest request;
  request.asked.caller.project = project_;
  if (key) request.asked.key = model::IdempotencyKey{*key};
  request.asked.request.method = "POST";
  request.asked.request.route = fmt::format("/v1/vms/{}/{}", ToString(vm), static_cast<int>(kind));
  request.asked.redacted = request.asked.request;
  request.asked.face = "rest";
  request.kind = kind;
  request.vm = vm;
  return Change(std::move(request));
}

service::Outcome World::Change(service::ChangeRequest request) {
  return AnswerTo(
      [&](service::Done done) { process_->service.Change(std::move(request), std::move(done)); });
}

service::Outcome World::Update(const model::VmId& vm, std::optional<model::Desired> desired,
                               std::optional<model::RestartPolicy> restart,
                               std::optional<std::string> key) {
  service::ChangeRequest request;
  request.asked.caller.project = model::ProjectId{"default"};
  if (key) request.asked.key = model::IdempotencyKey{*key};
  request.asked.request.method = "PATCH";
  request.asked.request.route = "/v1/vms/" + ToString(vm);
  request.asked.redacted = request.asked.request;
  request.asked.face = "rest";
  request.kind = service::ChangeRequest::Kind::kUpdate;
  request.vm = vm;
  request.desired = desired;
  request.restart = restart;
  return Change(std::move(request));
}

service::Outcome World::ForceStop(const model::VmId& vm) {
  service::ChangeRequest request;
  request.asked.caller.project = project_;
  request.asked.request.method = "POST";
  request.asked.request.route = "/v1/vms/" + ToString(vm) + "/stop";
  request.asked.redacted = request.asked.request;
  request.asked.face = "rest";
  request.kind = service::ChangeRequest::Kind::kStop;
  request.vm = vm;
  request.force = true;
  return Change(std::move(request));
}

service::Outcome World::Cancel(const model::OperationId& operation) {
  service::Asked asked;
  asked.caller.project = project_;
  asked.request.method = "POST";
  asked.request.route = "/v1/operations/" + ToString(operation) + "/cancel";
  asked.redacted = asked.request;
  asked.face = "rest";
  return AnswerTo([&](service::Done done) {
    process_->service.Cancel(std::move(asked), operation, std::move(done));
  });
}

bool World::Step() {
  const Result<bool> ran = process_->worker.RunOnce(options_.settle);
  CHECK_MSG(ran.has_value(), ran ? "" : ran.error().detail);
  return *ran;
}

void World::RunUntilQuiet(Milliseconds horizon, int restarts) {
  const Time end = ledger_->Now() + horizon;
  // Far more turns than any story here needs; a loop that never rests is a failure, not a hang.
  for (int turn = 0; turn < 5000; ++turn) {
    bool ran = false;
    try {
      ran = Step();
    } catch (const Crash&) {
      CHECK(restarts-- > 0);
      Restart();
      continue;
    }
    if (ran) continue;
    const Result<std::optional<Time>> due = ledger_->NextDue();
    CHECK(due.has_value());
    if (!due->has_value() || **due > end) return;
    clock_.Advance(std::max(Milliseconds(1), **due - ledger_->Now()));
  }
  CHECK_MSG(false, "the work never rests");
}

workflows::ReconcileReport World::Reconcile() { return Reconcile(options_.hosts.front()); }

workflows::ReconcileReport World::Reconcile(const std::string& host) {
  return process_->reconciler.Sweep(model::HostId{host});
}

ports::SweepCounts World::SweepLedger() {
  const auto counts = ledger_->Sweep(options_.retention, model::limits::kSweepRows);
  CHECK(counts.has_value());
  return *counts;
}

model::Vm World::VmRow(const model::VmId& id) {
  const auto row = ledger_->GetVm(id);
  CHECK(row && row->has_value());
  return **row;
}

model::Operation World::OperationRow(const model::OperationId& id) {
  const auto row = ledger_->GetOperation(id);
  CHECK(row && row->has_value());
  return **row;
}

std::vector<std::string> World::Timeline(const model::OperationId& id) {
  std::vector<std::string> events;
  const auto lines = ledger_->Timeline(id);
  CHECK(lines.has_value());
  for (const model::TimelineEntry& line : *lines) events.push_back(line.event);
  return events;
}

std::string World::Audit() {
  ports::VmFilter filter;
  filter.with_deleted = true;
  const auto rows = ledger_->ListVms(model::ProjectId{"default"}, filter, {100, ""});
  CHECK(rows.has_value());
  model::Resources held;
  std::map<std::string, model::Resources> placed;
  std::map<std::string, int> wanted;
  for (const model::Vm& vm : rows->rows) {
    if (vm.holds_reservation) held = held + Demand(vm.spec);
    if (vm.host) placed[vm.host->value] = placed[vm.host->value] + Demand(vm.spec);
    const bool is_there = vm.host && host(vm.host->value).Find(vm.id).has_value();
    if (vm.holder) return ToString(vm.id) + " is still held";
    if (vm.state == model::VmState::kReady) {
      if (!is_there) return ToString(vm.id) + " is ready and has no domain";
      ++wanted[vm.host->value];
    } else if (is_there) {
      return fmt::format("{} is {} and has a domain", ToString(vm.id), ToString(vm.state));
    } else if (vm.holds_reservation) {
      return fmt::format("{} is {} and holds a reservation", ToString(vm.id), ToString(vm.state));
    }
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const std::string& id = options_.hosts[i];
    const std::string broken = AuditHost(*hosts_[i], wanted[id]);
    if (!broken.empty()) return "host " + id + ": " + broken;
  }
  const auto usage = ledger_->Usage(model::ProjectId{"default"});
  if (!usage || *usage != held) return "the usage is not what the rows hold";
  const auto hosts = ledger_->Hosts();
  CHECK(hosts.has_value());
  for (const model::Host& row : *hosts) {
    if (row.reserved != placed[row.id.value]) return "a host's reserve is not what is placed";
  }
  const auto totals = ledger_->Totals();
  if (!totals || totals->unfinished != 0) return "something is unfinished";
  return "";
}

std::string World::AuditHost(const hypervisor::SimulatedHost& host, int wanted) const {
  int domains = 0;
  for (const hypervisor::SimulatedDomain& domain : host.Domains()) {
    if (domain.label && domain.label->ledger == ledger_->Id()) ++domains;
  }
  if (domains != wanted) return fmt::format("{} domains, {} wanted", domains, wanted);
  // A disk and a seed each.
  int volumes = 0;
  for (const std::string& name : host.Volumes()) {
    if (model::VmOfVolume(ledger_->Id(), name)) ++volumes;
  }
  if (volumes == 2 * wanted) return "";
  return fmt::format("{} volumes, {} wanted", volumes, 2 * wanted);
}

}  // namespace vmonce::node
