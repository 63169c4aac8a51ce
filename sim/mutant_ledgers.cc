#include <map>
#include <set>

#include "sim/forwarding.h"
#include "sim/mutants.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

using Key = std::pair<model::ProjectId, Digest>;

// The ledger with one of its own rules broken.
class BrokenStore final : public ForwardingLedger {
 public:
  BrokenStore(Stage& stage, Mutant mutant) : ForwardingLedger(*stage.ledger), mutant_(mutant) {}

  std::vector<ports::AcceptOutcome> Accept(std::span<const ports::Submission> batch) override {
    std::vector<ports::AcceptOutcome> answers;
    for (const ports::Submission& submission : batch) answers.push_back(AcceptOne(submission));
    return answers;
  }
  Result<std::vector<model::Operation>> TakeDue(const model::ReplicaId& owner, Milliseconds ttl,
                                                Milliseconds settle, int most) override {
    auto taken = base_.TakeDue(owner, ttl, settle, most);
    if (taken && mutant_ == Mutant::kFenceNotIncreased) {
      for (model::Operation& operation : *taken) --operation.fence.value;
    }
    return taken;
  }
  Result<std::vector<model::OperationId>> Renew(std::span<const model::Lease> leases,
                                                Milliseconds ttl) override {
    auto lost = base_.Renew(leases, ttl);
    if (lost && mutant_ == Mutant::kRenewalAlwaysSucceeds) lost->clear();
    return lost;
  }
  Result<ports::AdvanceOutcome> Record(const ports::Advance& asked) override {
    ports::Advance advance = asked;
    switch (mutant_) {
      case Mutant::kFenceIgnoredInLedger:
      case Mutant::kFenceNotIncreased: TakeLeaseOfNow(advance); break;
      case Mutant::kUserDataDropped: advance.drop_secrets = true; break;
      case Mutant::kReservationKept:
        for (ports::VmChange& change : advance.changes) change.release_reservation = false;
        break;
      case Mutant::kEventsToldTwice: {
        const auto events = advance.events;
        for (model::Event event : events) {
          ++event.id.bytes[15];
          advance.events.push_back(std::move(event));
        }
        break;
      }
      default: break;
    }
    return base_.Record(advance);
  }
  Result<std::vector<model::VmId>> InTombstones(std::span<const model::VmId> vms) override {
    if (mutant_ != Mutant::kTombstonesInvented) return base_.InTombstones(vms);
    return std::vector<model::VmId>(vms.begin(), vms.end());
  }
  Status PutHost(const model::Host& host) override {
    model::Host put = host;
    if (mutant_ == Mutant::kCapacityNotChecked) put.capacity.vms = 1'000;
    return base_.PutHost(put);
  }

 private:
  void TakeLeaseOfNow(ports::Advance& advance) {
    const auto row = base_.GetOperation(advance.lease.operation);
    if (!row || !row->has_value() || model::IsFinished((*row)->state)) return;
    if ((*row)->lease_owner == model::kUnleased) return;
    advance.lease = (*row)->CurrentLease();
  }

  ports::AcceptOutcome AcceptOne(const ports::Submission& asked) {
    ports::Submission submission = asked;
    if (auto* update = std::get_if<ports::UpdateVm>(&submission.change);
        update != nullptr && mutant_ == Mutant::kPatchLost) {
      update->labels.reset();
    }
    auto* create = std::get_if<ports::CreateVms>(&submission.change);
    if (create == nullptr) return base_.Accept(std::span(&submission, 1)).front();
    const Key key{submission.operation.project, submission.operation.key_hash.value_or(Digest{})};
    if (mutant_ == Mutant::kQuotaNotChecked) create->quota.vms = 1'000;
    if (mutant_ == Mutant::kCapacityNotChecked) create->capacity.vms = 1'000;
    if (mutant_ == Mutant::kKeyStoredOnRefusal && refused_.contains(key)) return refused_.at(key);
    if (mutant_ == Mutant::kCheckedBeforeKnown) {
      const auto usage = base_.Usage(submission.operation.project);
      if (usage && !(*usage + create->demand).FitsIn(create->quota)) {
        return ports::Declined{ports::DeclineReason::kQuotaExceeded, {}, {}, "made up"};
      }
    }
    auto answer = base_.Accept(std::span(&submission, 1)).front();
    if (!answer) return answer;
    if (std::holds_alternative<ports::Declined>(*answer)) refused_.emplace(key, answer);
    const bool is_known = std::holds_alternative<ports::Known>(*answer);
    const bool is_expired = std::holds_alternative<ports::KnownTombstone>(*answer);
    if ((is_known && mutant_ == Mutant::kKeyNotUnique) ||
        (is_expired && mutant_ == Mutant::kTombstoneForgotten)) {
      (*submission.operation.key_hash)[0] = static_cast<std::uint8_t>(++salt_);
      for (model::Vm& vm : create->vms) vm.name += std::to_string(salt_);
      return base_.Accept(std::span(&submission, 1)).front();
    }
    return answer;
  }

  const Mutant mutant_;
  std::map<Key, ports::AcceptOutcome> refused_;
  int salt_ = 0;
};

// One replica's view of the ledger: what it read once it never reads again.
class RememberingLedger final : public ForwardingLedger {
 public:
  RememberingLedger(Mutant mutant, std::unique_ptr<ports::Ledger> base)
      : ForwardingLedger(std::move(base)), mutant_(mutant) {}

  Result<std::optional<model::Operation>> GetOperation(const model::OperationId& id) override {
    if (mutant_ != Mutant::kOperationReadOnce) return base_.GetOperation(id);
    const auto found = operations_.find(id);
    if (found != operations_.end()) return found->second;
    auto read = base_.GetOperation(id);
    if (read && read->has_value()) operations_.emplace(id, **read);
    return read;
  }
  Result<std::optional<std::variant<ports::Known, ports::KnownTombstone>>> FindByKey(
      const model::ProjectId& project, const Digest& key_hash) override {
    if (mutant_ != Mutant::kOperationReadOnce) return base_.FindByKey(project, key_hash);
    const auto found = known_.find({project, key_hash});
    if (found != known_.end()) return found->second;
    auto read = base_.FindByKey(project, key_hash);
    if (read && read->has_value()) known_.emplace(Key{project, key_hash}, **read);
    return read;
  }
  Result<std::optional<model::Vm>> GetVm(const model::VmId& id) override {
    if (mutant_ != Mutant::kRowReadOnce) return base_.GetVm(id);
    const auto found = rows_.find(id);
    if (found != rows_.end()) return found->second;
    auto read = base_.GetVm(id);
    if (read && read->has_value()) rows_.emplace(id, **read);
    return read;
  }

 private:
  const Mutant mutant_;
  std::map<model::OperationId, model::Operation> operations_;
  std::map<Key, std::variant<ports::Known, ports::KnownTombstone>> known_;
  std::map<model::VmId, model::Vm> rows_;
};

// Reads the rows when the host is about to be listed, and answers with them afterwards.
class EarlyReader final : public ForwardingLedger {
 public:
  explicit EarlyReader(std::unique_ptr<ports::Ledger> base) : ForwardingLedger(std::move(base)) {}

  // A sweep begins with the connection, whose first question to the ledger this is.
  Result<std::vector<model::Host>> Hosts() override {
    auto hosts = base_.Hosts();
    if (!hosts) return hosts;
    early_.clear();
    for (const model::Host& host : *hosts) {
      if (auto rows = base_.VmsOnHost(host.id, {})) early_[host.id] = std::move(*rows);
    }
    return hosts;
  }
  Result<std::vector<model::Vm>> VmsOnHost(const model::HostId& host,
                                           std::span<const model::VmId> also) override {
    const auto found = early_.find(host);
    return found == early_.end() ? base_.VmsOnHost(host, also) : found->second;
  }

 private:
  std::map<model::HostId, std::vector<model::Vm>> early_;
};

}  // namespace

std::unique_ptr<ports::Ledger> MutatedStore(Stage& stage) {
  if (!stage.mutant) return std::make_unique<ForwardingLedger>(*stage.ledger);
  return std::make_unique<BrokenStore>(stage, *stage.mutant);
}

std::unique_ptr<ports::Ledger> Mutated(Stage& stage, std::unique_ptr<ports::Ledger> ledger) {
  if (stage.mutant == Mutant::kOperationReadOnce || stage.mutant == Mutant::kRowReadOnce) {
    return std::make_unique<RememberingLedger>(*stage.mutant, std::move(ledger));
  }
  if (stage.mutant == Mutant::kLedgerReadBeforeHost) {
    return std::make_unique<EarlyReader>(std::move(ledger));
  }
  return ledger;
}

}  // namespace vmonce::sim
