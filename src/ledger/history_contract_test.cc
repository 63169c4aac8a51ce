// Random histories, audited: whatever was accepted, advanced, lost, revived and swept, the counters
// are the sums over the rows.
#include <map>

#include "ledger/contract_world.h"

namespace vmonce::ledger {
namespace {

using model::OperationState;
using model::VmState;

class Histories : public LedgerContract {
 protected:
  std::uint64_t Below(std::uint64_t bound) {
    // A linear congruential generator (Knuth's MMIX): one seed, one history.
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return (seed_ >> 33) % bound;
  }

  void SubmitSomething() {
    const std::string key = fmt::format("key-{}", Below(400));
    switch (Below(5)) {
      case 0:
      case 1: {
        std::vector<std::string> names;
        const std::string name = fmt::format("vm-{}", Below(30));
        const auto count = 1 + Below(3);
        for (std::uint64_t i = 0; i < count; ++i) names.push_back(fmt::format("{}-{}", name, i));
        auto submission = world.Create(key, names);
        std::get<ports::CreateVms>(submission.change).quota = {20, 1000, 1'000'000, 1000};
        Note(submission);
        return;
      }
      case 2: Note(world.Delete(Below(2) == 0 ? "" : key, AnyVm())); return;
      case 3: Note(world.Stop(key, AnyVm())); return;
      case 4: Note(world.Rename("", AnyVm(), fmt::format("vm-{}-0", Below(30)))); return;
    }
  }

  void Note(const ports::Submission& submission) {
    const auto outcome = world.Accept(submission);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
    const auto* accepted = As<ports::Accepted>(outcome);
    if (accepted == nullptr) return;
    if (submission.operation.kind == model::OperationKind::kCreate) {
      creates_.push_back(submission.operation.id);
      for (const model::Vm& vm : accepted->vms) vms_.push_back(vm.id);
    }
  }

  model::VmId AnyVm() {
    return vms_.empty() ? model::VmId{world.NewId()} : vms_[Below(vms_.size())];
  }

  // One record of a worker that may crash before, between and after.
  void Work() {
    const auto& owner = Below(2) == 0 ? kReplica : kOtherReplica;
    for (model::Operation& operation : world.Take(owner, 3)) held_.push_back(std::move(operation));
    if (held_.empty()) return;
    const auto which = Below(held_.size());
    const model::Operation operation = held_[which];
    if (Below(4) == 0) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    const auto outcome = world.Record(
        operation.kind == model::OperationKind::kDelete ? Deletion(operation) : Other(operation));
    ++outcomes_[outcome];
  }

  ports::Advance Deletion(const model::Operation& operation) {
    auto advance = World::Of(operation);
    advance.state = OperationState::kSucceeded;
    ports::VmChange change =
        World::To(model::VmId{operation.items.front().subject}, VmState::kDeleted);
    change.release_reservation = true;
    change.release_host = Below(2) == 0;
    advance.changes = {change};
    return advance;
  }

  ports::Advance Other(const model::Operation& operation) {
    auto advance = World::Of(operation);
    if (operation.kind != model::OperationKind::kCreate) {
      advance.state = OperationState::kSucceeded;
      return advance;
    }
    bool all_ready = true;
    bool all_failed = true;
    for (model::Item& item : advance.items) {
      const auto found = world.ledger->GetVm(model::VmId{item.subject}).value();
      if (!found) return advance;  // Others finished it, and it expired: this lease is lost.
      const model::Vm& vm = *found;
      if (vm.delete_operation) {
        advance.state = OperationState::kCancelled;
        advance.changes.clear();
        return advance;
      }
      ports::VmChange change = Step(vm, item);
      all_ready &= change.state.value_or(vm.state) == VmState::kReady;
      all_failed &= change.state.value_or(vm.state) == VmState::kFailed;
      advance.changes.push_back(change);
    }
    if (all_ready) advance.state = OperationState::kSucceeded;
    if (all_failed) {
      advance.state = OperationState::kFailed;
      advance.failure = model::Failure{"f", "", true};
    }
    return advance;
  }

  ports::VmChange Step(const model::Vm& vm, model::Item& item) {
    ports::VmChange change;
    change.vm = vm.id;
    if (vm.state == VmState::kPending) change.state = VmState::kCreating;
    if (vm.state != VmState::kCreating) return change;
    switch (Below(5)) {
      case 0: change.place_on = model::HostId{Below(2) == 0 ? "h1" : "h2"}; break;
      case 1: change.release_host = true; break;
      case 2: change.state = VmState::kReady; break;
      case 3:
        change.state = VmState::kFailed;
        change.release_reservation = true;
        change.release_host = Below(2) == 0;
        item.phase = model::ItemPhase::kFailed;
        item.failure = model::Failure{"f", "", true};
        break;
      case 4: change.take_hold = true; break;
    }
    return change;
  }

  void Revive() {
    if (creates_.empty()) return;
    const auto id = creates_[Below(creates_.size())];
    const auto operation = world.ledger->GetOperation(id);
    if (!*operation) return;
    const auto outcome = world.ledger->Revive(id, (*operation)->attempt, kAmple, kAmple);
    ASSERT_TRUE(outcome.has_value());
    if (As<ports::Accepted>(outcome)) ++revived_;
  }

  void Audit() {
    model::Resources used;
    std::map<std::string, model::Resources> reserved = {{"h1", {}}, {"h2", {}}};
    std::map<std::string, int> names;
    for (const model::VmId& id : vms_) {
      const auto vm = world.ledger->GetVm(id);
      ASSERT_TRUE(vm.has_value());
      if (!*vm || !(*vm)->holds_reservation) continue;
      used = used + Demand((*vm)->spec);
      if ((*vm)->host)
        reserved[(*vm)->host->value] = reserved[(*vm)->host->value] + Demand((*vm)->spec);
      EXPECT_EQ(++names[(*vm)->name], 1) << (*vm)->name;
      EXPECT_NE((*vm)->state, VmState::kDeleted);
    }
    EXPECT_EQ(world.Usage(), used);
    EXPECT_EQ(world.ReservedOn("h1"), reserved["h1"]);
    EXPECT_EQ(world.ReservedOn("h2"), reserved["h2"]);
    AuditOperations();
  }

  void AuditOperations() {
    std::map<std::string, std::int64_t> in_state;
    std::int64_t keys = 0;
    ports::Page page{100, ""};
    do {
      const auto answer = world.ledger->ListOperations(world.project, {}, page);
      ASSERT_TRUE(answer.has_value());
      for (const auto& operation : answer->rows) {
        ++in_state[std::string(ToString(operation.state))];
        keys += operation.key_hash ? 1 : 0;
        EXPECT_EQ(operation.finished.has_value(), IsFinished(operation.state));
      }
      page.after = answer->next;
    } while (!page.after.empty());
    EXPECT_EQ(world.ledger->LiveKeys(world.project), keys);
    const auto totals = world.ledger->Totals();
    for (const auto& [state, count] : totals->operations_in_state) {
      EXPECT_EQ(count, in_state[state]) << state;
    }
  }

  std::uint64_t seed_ = 1;
  std::vector<model::OperationId> creates_;
  std::vector<model::VmId> vms_;
  std::vector<model::Operation> held_;
  // What has happened at all.
  std::map<ports::AdvanceOutcome, int> outcomes_;
  int revived_ = 0;
  int expired_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Histories, Histories, testing::Values(kSqliteMemory), AdapterName);

// report 128, report 131
TEST_P(Histories, LeaveEveryCounterEqualToItsRows) {
  world.AddHost("h1", {1, 100, 100'000, 100});
  world.AddHost("h2", {3, 100, 100'000, 500});
  model::RetentionPolicy policy;
  for (int step = 0; step < 4000; ++step) {
    switch (Below(20)) {
      case 0: world.clock.Advance(kTtl / 3); break;
      case 1: Revive(); break;
      case 2:
        if (Below(20) == 0) world.clock.Advance(policy.retention);
        expired_ += world.ledger->Sweep(policy, 5).value().expired;
        break;
      case 3:
      case 4:
      case 5:
      case 6:
      case 7: SubmitSomething(); break;
      default: Work(); break;
    }
    if (Below(50) == 0) Audit();
    if (HasFatalFailure()) return;
  }
  Audit();
  // The history was one worth auditing.
  EXPECT_GT(creates_.size(), 50u);
  EXPECT_GT(revived_, 0);
  EXPECT_GT(expired_, 0);
  EXPECT_GT(outcomes_[ports::AdvanceOutcome::kRecorded], 100);
  EXPECT_GT(outcomes_[ports::AdvanceOutcome::kLost], 0);
  EXPECT_GT(outcomes_[ports::AdvanceOutcome::kNoRoom], 0);
}

}  // namespace
}  // namespace vmonce::ledger
