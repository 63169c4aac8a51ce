#include "hypervisor/host_threads.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "base/check.h"
#include "base/doorbell.h"

namespace vmonce::hypervisor {

// What a call is: `late` is what its caller is told when it does not return in time.
struct HostThreads::Kind {
  const char* name;
  ErrorCode late;
  Milliseconds within;
  std::optional<model::VmId> vm;
};

// Owned by the caller and by the thread that runs it, whoever ends later.
struct HostThreads::Job {
  enum class State { kQueued, kRunning, kDone, kAbandoned };

  explicit Job(Threads& threads) : bell(threads) {}

  std::optional<model::VmId> vm;
  std::string name;
  std::function<void(ports::Hypervisor&)> run;
  State state = State::kQueued;
  Doorbell bell;  // Rung at every change that its caller waits for.
};

struct HostThreads::Pool {
  Pool(std::shared_ptr<ports::Hypervisor> r, HostThreadsOptions o, Threads& t, Logger& l)
      : raw(std::move(r)), options(std::move(o)), threads(t), logger(l), monitor(t.NewMonitor()) {}

  enum class End { kDone, kNeverRan, kAbandoned };
  // Runs the job on some thread and waits for it until `deadline`.
  static End Run(const std::shared_ptr<Pool>& pool, const std::shared_ptr<Job>& job,
                 Instant deadline);
  // One thread: takes jobs until the pool closes. An abandoned call's thread goes on with it when
  // the call returns after all.
  static void Work(const std::shared_ptr<Pool>& pool);
  // After the deadline, or when no thread is left: what became of the job.
  End GiveUp(const std::shared_ptr<Job>& job);
  void Finish(Job& job) REQUIRES(*monitor);
  bool AllAreOut() const REQUIRES(*monitor) {
    return static_cast<int>(abandoned.size()) >= options.threads;
  }

  // Shared with the calls that run: an abandoned one still uses it when it is null here.
  std::shared_ptr<ports::Hypervisor> raw;
  const HostThreadsOptions options;
  Threads& threads;
  Logger& logger;
  const std::unique_ptr<Monitor> monitor;

  std::deque<std::shared_ptr<Job>> queue GUARDED_BY(*monitor);
  std::vector<std::shared_ptr<Job>> abandoned GUARDED_BY(*monitor);
  int workers GUARDED_BY(*monitor) = 0;
  int idle GUARDED_BY(*monitor) = 0;
  bool is_closing GUARDED_BY(*monitor) = false;
};

HostThreads::Pool::End HostThreads::Pool::Run(const std::shared_ptr<Pool>& pool,
                                              const std::shared_ptr<Job>& job, Instant deadline) {
  {
    MonitorLock lock(*pool->monitor);
    CHECK(!pool->is_closing);
    if (pool->AllAreOut()) return End::kNeverRan;
    pool->queue.push_back(job);
    if (pool->idle < static_cast<int>(pool->queue.size()) &&
        pool->workers < pool->options.threads) {
      ++pool->workers;
      pool->threads.SpawnDetached(fmt::format("h-{}", pool->options.host).substr(0, 15),
                                  [pool] { Work(pool); });
    }
  }
  pool->monitor->NotifyOne();
  bool in_time = true;
  bool is_hopeless = false;
  while (in_time && !is_hopeless) {
    in_time = job->bell.WaitUntil(deadline);
    MonitorLock lock(*pool->monitor);
    if (job->state == Job::State::kDone) return End::kDone;
    is_hopeless = job->state == Job::State::kQueued && pool->AllAreOut();
  }
  return pool->GiveUp(job);
}

HostThreads::Pool::End HostThreads::Pool::GiveUp(const std::shared_ptr<Job>& job) {
  MonitorLock lock(*monitor);
  if (job->state == Job::State::kDone) return End::kDone;
  if (job->state == Job::State::kQueued) {
    std::erase(queue, job);
    return End::kNeverRan;
  }
  job->state = Job::State::kAbandoned;
  abandoned.push_back(job);
  // Nobody may be left to run what is queued.
  for (const std::shared_ptr<Job>& other : queue) other->bell.Ring();
  monitor->NotifyAll();
  return End::kAbandoned;
}

void HostThreads::Pool::Work(const std::shared_ptr<Pool>& pool) {
  pool->monitor->Lock();
  while (true) {
    ++pool->idle;
    while (pool->queue.empty() && !pool->is_closing) pool->monitor->Wait();
    --pool->idle;
    if (pool->queue.empty()) break;
    auto job = pool->queue.front();
    pool->queue.pop_front();
    job->state = Job::State::kRunning;
    auto raw = pool->raw;
    pool->monitor->Unlock();

    job->run(*raw);
    job->run = nullptr;  // The arguments (user data among them) go now.
    raw.reset();

    pool->monitor->Lock();
    pool->Finish(*job);
    pool->monitor->Unlock();
    job->bell.Ring();
    job.reset();
    pool->monitor->Lock();
  }
  --pool->workers;
  pool->monitor->NotifyAll();
  pool->monitor->Unlock();
}

void HostThreads::Pool::Finish(Job& job) {
  if (job.state == Job::State::kAbandoned) {
    std::erase_if(abandoned, [&](const auto& other) { return other.get() == &job; });
    // When nobody has the host any more, the logger may be gone as well.
    if (!is_closing)
      logger.Warning("hypervisor_call_returned_late", {{"host", options.host}, {"call", job.name}});
  }
  // Whoever closes the pool counts these.
  if (is_closing) monitor->NotifyAll();
  job.state = Job::State::kDone;
}

HostThreads::HostThreads(std::shared_ptr<ports::Hypervisor> raw, HostThreadsOptions options,
                         Clock& clock, Threads& threads, Logger& logger)
    : options_(options),
      clock_(clock),
      pool_(std::make_shared<Pool>(std::move(raw), std::move(options), threads, logger)) {
  CHECK(options_.threads > 0);
}

HostThreads::~HostThreads() {
  MonitorLock lock(*pool_->monitor);
  pool_->is_closing = true;
  pool_->monitor->NotifyAll();
  while (pool_->workers > static_cast<int>(pool_->abandoned.size())) pool_->monitor->Wait();
  // Gone when this returns, locks and connections with it, unless an abandoned call still has it.
  pool_->raw.reset();
}

bool HostThreads::AnyOut() const {
  MonitorLock lock(*pool_->monitor);
  return !pool_->abandoned.empty();
}

Milliseconds HostThreads::SettleTime() const { return pool_->raw->SettleTime(); }

int HostThreads::CallsOut(const model::VmId& vm) const {
  MonitorLock lock(*pool_->monitor);
  return static_cast<int>(
      std::ranges::count_if(pool_->abandoned, [&](const auto& job) { return job->vm == vm; }));
}

template <typename Answer>
Answer HostThreads::Run(const Kind& kind, std::function<Answer(ports::Hypervisor&)> body) {
  // Shared with the thread that runs the call, which may write it after we are gone.
  auto answer = std::make_shared<std::optional<Answer>>();
  auto job = std::make_shared<Job>(pool_->threads);
  job->vm = kind.vm;
  job->name = kind.name;
  job->run = [answer, body = std::move(body)](ports::Hypervisor& raw) {
    answer->emplace(body(raw));
  };
  const Instant began = clock_.Monotonic();
  switch (Pool::Run(pool_, job, began + kind.within)) {
    case Pool::End::kDone:
      Tell(kind, (*answer)->has_value() ? "ok" : ToString((*answer)->error().code), began);
      return std::move(**answer);
    case Pool::End::kNeverRan:
      Tell(kind, "not_tried", began);
      return Fail(ErrorCode::kUnavailable, fmt::format("host {} does not answer: {} was not tried",
                                                       options_.host, kind.name));
    case Pool::End::kAbandoned: break;
  }
  Tell(kind, "given_up", began);
  pool_->logger.Warning("hypervisor_call_given_up", {{"host", options_.host}, {"call", kind.name}});
  return Fail(kind.late, fmt::format("host {} did not answer {} within {} ms", options_.host,
                                     kind.name, kind.within.count()));
}

void HostThreads::Tell(const Kind& kind, std::string_view outcome, Instant began) const {
  if (options_.on_call) options_.on_call(kind.name, outcome, clock_.Monotonic() - began);
}

Status HostThreads::RunEffect(const char* name, Effect effect, const model::VmId& vm,
                              const ports::EffectGuard& guard) {
  return Run<Status>(
      {name, ErrorCode::kUnknown, options_.effect_deadline, vm},
      [effect, vm, guard](ports::Hypervisor& raw) { return (raw.*effect)(vm, guard); });
}

Result<ports::HostFacts> HostThreads::Connect(const model::HostMarker& marker,
                                              ports::MarkerPolicy policy) {
  // The marker that a late Connect may still write is the one that the next Connect looks for.
  return Run<Result<ports::HostFacts>>(
      {"connect", ErrorCode::kUnavailable, options_.connect_deadline, std::nullopt},
      [marker, policy](ports::Hypervisor& raw) { return raw.Connect(marker, policy); });
}

Result<std::optional<model::HostMarker>> HostThreads::ReadMarker() {
  return Run<Result<std::optional<model::HostMarker>>>(
      {"read_marker", ErrorCode::kUnavailable, options_.connect_deadline, std::nullopt},
      [](ports::Hypervisor& raw) { return raw.ReadMarker(); });
}

Result<std::optional<ports::DomainSighting>> HostThreads::Look(const model::VmId& vm) {
  return Run<Result<std::optional<ports::DomainSighting>>>(
      {"look", ErrorCode::kUnavailable, options_.look_deadline, std::nullopt},
      [vm](ports::Hypervisor& raw) { return raw.Look(vm); });
}

Result<std::vector<ports::DomainSighting>> HostThreads::List() {
  return Run<Result<std::vector<ports::DomainSighting>>>(
      {"list", ErrorCode::kUnavailable, options_.look_deadline, std::nullopt},
      [](ports::Hypervisor& raw) { return raw.List(); });
}

Result<std::vector<ports::VolumeSighting>> HostThreads::ListVolumes() {
  return Run<Result<std::vector<ports::VolumeSighting>>>(
      {"list_volumes", ErrorCode::kUnavailable, options_.look_deadline, std::nullopt},
      [](ports::Hypervisor& raw) { return raw.ListVolumes(); });
}

Result<std::vector<model::HostPort>> HostThreads::PortsInUse(
    const std::string& address, const std::vector<model::HostPort>& ports) {
  return Run<Result<std::vector<model::HostPort>>>(
      {"ports_in_use", ErrorCode::kUnavailable, options_.look_deadline, std::nullopt},
      [address, ports](ports::Hypervisor& raw) { return raw.PortsInUse(address, ports); });
}

Status HostThreads::CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) {
  return Run<Status>(
      {"create_disk", ErrorCode::kUnknown, options_.effect_deadline, order.vm},
      [order, guard](ports::Hypervisor& raw) { return raw.CreateDisk(order, guard); });
}

Status HostThreads::CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) {
  return Run<Status>(
      {"create_seed", ErrorCode::kUnknown, options_.effect_deadline, order.vm},
      [order, guard](ports::Hypervisor& raw) { return raw.CreateSeed(order, guard); });
}

Status HostThreads::Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) {
  return Run<Status>({"define", ErrorCode::kUnknown, options_.effect_deadline, order.vm},
                     [order, guard](ports::Hypervisor& raw) { return raw.Define(order, guard); });
}

Status HostThreads::DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("delete_disk", &ports::Hypervisor::DeleteDisk, vm, guard);
}

Status HostThreads::DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("delete_seed", &ports::Hypervisor::DeleteSeed, vm, guard);
}

Status HostThreads::StampFence(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("stamp_fence", &ports::Hypervisor::StampFence, vm, guard);
}

Status HostThreads::Undefine(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("undefine", &ports::Hypervisor::Undefine, vm, guard);
}

Status HostThreads::Start(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("start", &ports::Hypervisor::Start, vm, guard);
}

Status HostThreads::Destroy(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("destroy", &ports::Hypervisor::Destroy, vm, guard);
}

Status HostThreads::Shutdown(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("shutdown", &ports::Hypervisor::Shutdown, vm, guard);
}

Status HostThreads::Reboot(const model::VmId& vm, const ports::EffectGuard& guard) {
  return RunEffect("reboot", &ports::Hypervisor::Reboot, vm, guard);
}

Result<ports::ConsoleChunk> HostThreads::ReadConsole(const model::VmId& vm, std::int64_t offset,
                                                     std::size_t most) {
  return Run<Result<ports::ConsoleChunk>>(
      {"read_console", ErrorCode::kUnavailable, options_.look_deadline, std::nullopt},
      [vm, offset, most](ports::Hypervisor& raw) { return raw.ReadConsole(vm, offset, most); });
}

}  // namespace vmonce::hypervisor
