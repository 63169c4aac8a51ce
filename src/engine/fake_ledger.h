// An in-memory ledger for tests of what stands on the port: rows, leases, fences and marks as the
// contract has them, and faults where a test asks for them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "ports/ledger.h"

namespace vmonce::engine {

// Thread-safe, but for the hooks, which are set before other threads begin.
class FakeLedger final : public ports::Ledger {
 public:
  // A call, by its name in the port: an error that is answered.
  using Fault = std::function<std::optional<Error>(std::string_view call)>;

  FakeLedger(Clock& clock, Threads& threads) : clock_(clock), monitor_(threads.NewMonitor()) {}

  Fault before;  // Nothing happens.
  Fault after;   // It has happened; the answer is lost.
  // Answers in the place of Record(), which then writes nothing.
  std::function<std::optional<Result<ports::AdvanceOutcome>>(const ports::Advance&)> on_record;
  // Answers in the place of Accept() for one member, which then writes nothing.
  std::function<std::optional<ports::AcceptOutcome>(const ports::Submission&)> on_accept;

  void Put(const model::Operation& operation) {
    MonitorLock lock(*monitor_);
    operations_[operation.id] = operation;
  }
  void Put(const model::Vm& vm) {
    MonitorLock lock(*monitor_);
    vms_[vm.id] = vm;
  }
  void Mark(const Uuid& subject) {
    MonitorLock lock(*monitor_);
    marked_.insert(subject);
  }
  bool IsMarked(const Uuid& subject) const {
    MonitorLock lock(*monitor_);
    return marked_.contains(subject);
  }
  model::Operation Row(const model::OperationId& id) const {
    MonitorLock lock(*monitor_);
    return operations_.at(id);
  }
  // What was recorded, in order.
  std::vector<ports::Advance> Advances() const {
    MonitorLock lock(*monitor_);
    return advances_;
  }
  std::vector<std::string> Story() const {
    std::vector<std::string> events;
    for (const ports::Advance& advance : Advances()) {
      for (const model::TimelineEntry& line : advance.timeline) events.push_back(line.event);
    }
    return events;
  }
  int Calls(std::string_view call) const {
    MonitorLock lock(*monitor_);
    const auto found = calls_.find(std::string(call));
    return found == calls_.end() ? 0 : found->second;
  }
  std::vector<std::vector<ports::Submission>> Batches() const {
    MonitorLock lock(*monitor_);
    return batches_;
  }

  model::LedgerId Id() const override { return {"0123456789ab"}; }
  Time Now() override { return clock_.Now(); }
  Status Ping() override {
    return Through("Ping", [] { return Status(); });
  }

  std::vector<ports::AcceptOutcome> Accept(std::span<const ports::Submission> batch) override {
    std::vector<ports::AcceptOutcome> outcomes;
    Note("Accept");
    if (const auto error = Ask(before, "Accept")) return AllOf(*error, batch.size());
    for (const ports::Submission& submission : batch) {
      std::optional<ports::AcceptOutcome> outcome;
      if (on_accept) outcome = on_accept(submission);
      outcomes.push_back(outcome ? std::move(*outcome) : AcceptOne(submission));
    }
    {
      MonitorLock lock(*monitor_);
      batches_.emplace_back(batch.begin(), batch.end());
    }
    if (const auto error = Ask(after, "Accept")) return AllOf(*error, batch.size());
    return outcomes;
  }
  ports::AcceptOutcome Revive(const model::OperationId& id, int expected_attempt,
                              const model::Resources&, const model::Resources&) override {
    return Through("Revive", [&]() -> ports::AcceptOutcome {
      model::Operation& row = operations_.at(id);
      const bool may_pass = row.state == model::OperationState::kFailed && row.failure &&
                            row.failure->passing && row.attempt == expected_attempt;
      if (!may_pass) return ports::Known{row, OfOperation(row)};
      ++row.attempt;
      row.state = model::OperationState::kAccepted;
      row.failure.reset();
      row.finished.reset();
      return ports::Accepted{row, OfOperation(row)};
    });
  }

  Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner, Milliseconds ttl,
                                                Milliseconds, int most) override {
    return Through("TakeDue", [&]() -> Result<std::vector<model::Operation>> {
      std::vector<model::Operation> taken;
      for (auto& [id, row] : operations_) {
        if (static_cast<int>(taken.size()) == most) break;
        if (row.finished || std::max(row.due, row.lease_until) > clock_.Now()) continue;
        ++row.fence.value;
        row.lease_owner = owner.value;
        row.lease_until = clock_.Now() + ttl;
        taken.push_back(row);
      }
      return taken;
    });
  }
  Result<std::vector<model::OperationId>> Renew(std::span<const model::Lease> leases,
                                                Milliseconds ttl) override {
    return Through("Renew", [&]() -> Result<std::vector<model::OperationId>> {
      std::vector<model::OperationId> lost;
      for (const model::Lease& lease : leases) {
        if (IsHeld(lease)) {
          operations_.at(lease.operation).lease_until = clock_.Now() + ttl;
        } else {
          lost.push_back(lease.operation);
        }
      }
      return lost;
    });
  }
  Result<ports::AdvanceOutcome> Record(const ports::Advance& advance) override {
    if (on_record) {
      if (auto answer = on_record(advance)) {
        Note("Record");
        return *answer;
      }
    }
    return Through("Record", [&] { return Result<ports::AdvanceOutcome>(Write(advance)); });
  }
  Result<std::optional<Time>> NextDue() override {
    return Through("NextDue", [&]() -> Result<std::optional<Time>> {
      std::optional<Time> next;
      for (const auto& [id, row] : operations_) {
        if (row.finished) continue;
        const Time due = std::max(row.due, row.lease_until);
        next = std::min(next.value_or(due), due);
      }
      return next;
    });
  }
  Status MakeDue(const model::OperationId& id) override {
    return Through("MakeDue", [&]() -> Status {
      made_due_.push_back(id);
      return {};
    });
  }
  std::vector<model::OperationId> MadeDue() const {
    MonitorLock lock(*monitor_);
    return made_due_;
  }

  Result<std::optional<std::variant<ports::Known, ports::KnownTombstone>>> FindByKey(
      const model::ProjectId& project, const Digest& key_hash) override {
    using Found = std::optional<std::variant<ports::Known, ports::KnownTombstone>>;
    return Through("FindByKey", [&]() -> Result<Found> {
      const auto tombstone = tombstones.find(key_hash);
      if (tombstone != tombstones.end()) return Found(ports::KnownTombstone{tombstone->second});
      const model::Operation* row = ByKey(project, key_hash);
      if (row == nullptr) return Found();
      return Found(ports::Known{*row, OfOperation(*row)});
    });
  }
  std::map<Digest, model::Tombstone> tombstones;

  Result<std::optional<model::Operation>> GetOperation(const model::OperationId& id) override {
    return Through("GetOperation", [&]() -> Result<std::optional<model::Operation>> {
      return Get(operations_, id);
    });
  }
  Result<std::optional<model::Vm>> GetVm(const model::VmId& id) override {
    return Through("GetVm", [&]() -> Result<std::optional<model::Vm>> { return Get(vms_, id); });
  }
  Result<std::vector<model::Vm>> VmsOf(const model::OperationId& creator) override {
    return Through("VmsOf", [&]() -> Result<std::vector<model::Vm>> {
      const auto row = operations_.find(creator);
      return row == operations_.end() ? std::vector<model::Vm>() : OfOperation(row->second);
    });
  }
  Result<ports::PageOf<model::Vm>> ListVms(const model::ProjectId& project,
                                           const ports::VmFilter& filter,
                                           const ports::Page& page) override {
    return Through("ListVms", [&]() -> Result<ports::PageOf<model::Vm>> {
      ports::PageOf<model::Vm> rows;
      for (const auto& [id, vm] : vms_) {
        if (vm.project != project || (filter.name && vm.name != *filter.name)) continue;
        if (!page.after.empty() && ToString(id) <= page.after) continue;
        if (static_cast<int>(rows.rows.size()) == page.most) {
          rows.next = ToString(rows.rows.back().id);
          break;
        }
        rows.rows.push_back(vm);
      }
      return rows;
    });
  }
  Status AppendTimeline(std::span<const model::TimelineEntry> entries) override {
    return Through("AppendTimeline", [&]() -> Status {
      appended.insert(appended.end(), entries.begin(), entries.end());
      return {};
    });
  }
  std::vector<model::TimelineEntry> appended;
  Result<std::vector<model::Host>> Hosts() override {
    return Through("Hosts", [&]() -> Result<std::vector<model::Host>> { return hosts; });
  }
  std::vector<model::Host> hosts;
  Result<std::vector<model::HostId>> HostsUsingPort(const model::HostPort&) override {
    return Through("HostsUsingPort", []() -> Result<std::vector<model::HostId>> {
      return std::vector<model::HostId>();
    });
  }
  Result<std::int64_t> LiveKeys(const model::ProjectId&) override { return 0; }
  Result<model::Resources> Usage(const model::ProjectId&) override {
    return Through("Usage", [&]() -> Result<model::Resources> { return usage; });
  }
  model::Resources usage;

  // What no test of these folders asks a fake for.
  Result<ports::PageOf<model::Operation>> ListOperations(const model::ProjectId&,
                                                         const ports::OperationFilter&,
                                                         const ports::Page&) override {
    return ports::PageOf<model::Operation>();
  }
  Result<std::vector<model::TimelineEntry>> Timeline(const model::OperationId&) override {
    return std::vector<model::TimelineEntry>();
  }
  Result<std::vector<model::Event>> Outbox(std::int64_t) override {
    return std::vector<model::Event>();
  }
  Result<ports::LedgerTotals> Totals() override { return ports::LedgerTotals(); }
  Status PutHost(const model::Host&) override { return {}; }
  Status MarkRegistered(const model::HostId&) override { return {}; }
  Status SetHostState(const model::HostId&, model::HostState) override { return {}; }
  Status MarkReturned(const model::HostId&) override { return {}; }
  Result<std::vector<model::Vm>> VmsOnHost(const model::HostId&,
                                           std::span<const model::VmId>) override {
    return std::vector<model::Vm>();
  }
  Result<std::vector<model::VmId>> InTombstones(std::span<const model::VmId>) override {
    return std::vector<model::VmId>();
  }
  Result<std::vector<model::VmId>> MovedAway(const model::HostId&,
                                             std::span<const model::VmId>) override {
    return std::vector<model::VmId>();
  }
  Result<int> Observe(std::span<const ports::Observation>) override { return 0; }
  Result<std::vector<ports::StraySighting>> NoteStrays(const model::HostId&,
                                                       std::span<const model::VmId>) override {
    return std::vector<ports::StraySighting>();
  }
  Status MarkQuarantined(const model::HostId&, const model::VmId&) override { return {}; }
  Result<ports::SweepCounts> Sweep(const model::RetentionPolicy&, int) override {
    return ports::SweepCounts();
  }

 private:
  static std::vector<ports::AcceptOutcome> AllOf(const Error& error, std::size_t count) {
    return std::vector<ports::AcceptOutcome>(count, std::unexpected(error));
  }
  static std::optional<Error> Ask(const Fault& fault, std::string_view call) {
    return fault ? fault(call) : std::nullopt;
  }
  void Note(std::string_view call) {
    MonitorLock lock(*monitor_);
    ++calls_[std::string(call)];
  }
  // Hooks run without the lock, so that they may call the ledger.
  template <typename Call>
  auto Through(std::string_view name, Call call) -> decltype(call()) {
    Note(name);
    if (const auto error = Ask(before, name)) return std::unexpected(*error);
    auto result = [&] {
      MonitorLock lock(*monitor_);
      return call();
    }();
    if (const auto error = Ask(after, name)) return std::unexpected(*error);
    return result;
  }
  template <typename Map, typename Key>
  static std::optional<typename Map::mapped_type> Get(const Map& map, const Key& key) {
    const auto found = map.find(key);
    if (found == map.end()) return std::nullopt;
    return found->second;
  }

  bool IsHeld(const model::Lease& lease) const {
    const auto found = operations_.find(lease.operation);
    return found != operations_.end() && !found->second.finished &&
           found->second.lease_owner == lease.owner.value && found->second.fence == lease.fence;
  }
  ports::AdvanceOutcome Write(const ports::Advance& advance) {
    if (!IsHeld(advance.lease)) return ports::AdvanceOutcome::kLost;
    if (advance.unless_marked && marked_.contains(*advance.unless_marked)) {
      return ports::AdvanceOutcome::kMarked;
    }
    model::Operation& row = operations_.at(advance.lease.operation);
    row.state = advance.state;
    row.items = advance.items;
    row.failure = advance.failure;
    row.is_stuck = advance.is_stuck;
    if (advance.drop_secrets) row.sealed_secrets.clear();
    const bool is_finished = model::IsFinished(advance.state);
    if (is_finished) row.finished = clock_.Now();
    if (is_finished || advance.release_due_in) {
      row.lease_owner = std::string(model::kUnleased);
      row.lease_until = Time{};
      row.due = clock_.Now() + advance.release_due_in.value_or(Milliseconds(0));
    }
    advances_.push_back(advance);
    return ports::AdvanceOutcome::kRecorded;
  }

  const model::Operation* ByKey(const model::ProjectId& project, const Digest& key_hash) const {
    for (const auto& [id, row] : operations_) {
      if (row.project == project && row.key_hash == key_hash) return &row;
    }
    return nullptr;
  }
  std::vector<model::Vm> OfOperation(const model::Operation& operation) const {
    std::vector<model::Vm> vms;
    for (const model::Item& item : operation.items) {
      if (const auto found = vms_.find({item.subject}); found != vms_.end()) {
        vms.push_back(found->second);
      }
    }
    return vms;
  }
  // The key decides; what else a claim may be declined for is on_accept's.
  ports::AcceptOutcome AcceptOne(const ports::Submission& submission) {
    MonitorLock lock(*monitor_);
    model::Operation row = submission.operation;
    if (row.key_hash) {
      if (const auto gone = tombstones.find(*row.key_hash); gone != tombstones.end()) {
        return ports::KnownTombstone{gone->second};
      }
      if (const model::Operation* known = ByKey(row.project, *row.key_hash)) {
        return ports::Known{*known, OfOperation(*known)};
      }
    }
    row.sequence = static_cast<std::int64_t>(operations_.size()) + 1;
    row.accepted = row.updated = row.due = clock_.Now();
    if (submission.lease) {
      row.fence = {1};
      row.lease_owner = submission.lease->owner.value;
      row.lease_until = clock_.Now() + submission.lease->ttl;
    }
    if (const auto* create = std::get_if<ports::CreateVms>(&submission.change)) {
      for (const model::Vm& vm : create->vms) vms_[vm.id] = vm;
    }
    if (const auto* removal = std::get_if<ports::DeleteVm>(&submission.change)) {
      const auto found = vms_.find(removal->vm);
      if (found != vms_.end()) {
        found->second.state = model::VmState::kDeleting;
        found->second.delete_operation = row.id;
      }
    }
    operations_[row.id] = row;
    return ports::Accepted{row, OfOperation(row)};
  }

  Clock& clock_;
  std::unique_ptr<Monitor> monitor_;
  std::map<model::OperationId, model::Operation> operations_ GUARDED_BY(*monitor_);
  std::map<model::VmId, model::Vm> vms_ GUARDED_BY(*monitor_);
  std::set<Uuid> marked_ GUARDED_BY(*monitor_);
  std::vector<ports::Advance> advances_ GUARDED_BY(*monitor_);
  std::vector<std::vector<ports::Submission>> batches_ GUARDED_BY(*monitor_);
  std::vector<model::OperationId> made_due_ GUARDED_BY(*monitor_);
  std::map<std::string, int> calls_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::engine
