// Keeps a hung hypervisor from stopping anything else: every call runs on one of a few threads of
// its host and has a deadline (protocol section 9).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "model/limits.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// Told after every call: what it was called, how it ended ("ok", an ErrorCode's word, "given_up",
// "not_tried"), and how long it took. On the caller's thread; must not block.
using CallObserver = std::function<void(std::string_view call, std::string_view outcome,
                                        std::chrono::nanoseconds took)>;

struct HostThreadsOptions {
  std::string host;  // For logs and thread names.
  int threads = model::limits::kHostThreads;
  Milliseconds effect_deadline = model::limits::kCallDeadline;
  Milliseconds look_deadline = model::limits::kLookDeadline;
  Milliseconds connect_deadline = model::limits::kConnectDeadline;
  CallObserver on_call;  // May be empty.
};

// A call past its deadline is kUnknown when it has an effect, kUnavailable when it only looks. Its
// thread is abandoned to end by itself; it owns its arguments and shares the raw adapter. A call
// that did not begin before its deadline is kUnavailable, and so is, at once, every call while all
// threads are abandoned ones. Thread-safe.
//
// Clock, Threads and Logger outlive the calls that were given up too: while AnyOut(), the process
// ends by _exit.
class HostThreads final : public ports::Hypervisor {
 public:
  // `raw` is shared with abandoned calls, which may outlive this object.
  HostThreads(std::shared_ptr<ports::Hypervisor> raw, HostThreadsOptions options, Clock& clock,
              Threads& threads, Logger& logger);
  // No call may be waiting any more. Waits for idle threads to end, not for abandoned ones.
  ~HostThreads() override;

  // Some call was given up and has not returned.
  bool AnyOut() const;

  Result<ports::HostFacts> Connect(const model::HostMarker& marker,
                                   ports::MarkerPolicy policy) override;
  Result<std::optional<model::HostMarker>> ReadMarker() override;
  Milliseconds SettleTime() const override;
  int CallsOut(const model::VmId& vm) const override;
  Result<std::optional<ports::DomainSighting>> Look(const model::VmId& vm) override;
  Result<std::vector<ports::DomainSighting>> List() override;
  Result<std::vector<ports::VolumeSighting>> ListVolumes() override;
  Result<std::vector<model::HostPort>> PortsInUse(
      const std::string& address, const std::vector<model::HostPort>& ports) override;
  Status CreateDisk(const ports::DiskOrder& order, const ports::EffectGuard& guard) override;
  Status DeleteDisk(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status CreateSeed(const ports::SeedOrder& order, const ports::EffectGuard& guard) override;
  Status DeleteSeed(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Define(const ports::DomainOrder& order, const ports::EffectGuard& guard) override;
  Status StampFence(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Undefine(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Start(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Destroy(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Shutdown(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Status Reboot(const model::VmId& vm, const ports::EffectGuard& guard) override;
  Result<ports::ConsoleChunk> ReadConsole(const model::VmId& vm, std::int64_t offset,
                                          std::size_t most) override;

 private:
  struct Pool;
  struct Job;
  struct Kind;

  template <typename Answer>
  Answer Run(const Kind& kind, std::function<Answer(ports::Hypervisor&)> body);

  void Tell(const Kind& kind, std::string_view outcome, Instant began) const;

  using Effect = Status (ports::Hypervisor::*)(const model::VmId&, const ports::EffectGuard&);
  Status RunEffect(const char* name, Effect effect, const model::VmId& vm,
                   const ports::EffectGuard& guard);

  const HostThreadsOptions options_;
  Clock& clock_;
  // Shared: the threads of abandoned calls use it after this object is gone.
  std::shared_ptr<Pool> pool_;
};

}  // namespace vmonce::hypervisor
