// A rebuild with one of its rules broken, at the two doors that it has.
#include "sim/forwarding.h"
#include "sim/mutants.h"
#include "sim/stage.h"

namespace vmonce::sim {
namespace {

// The ledger as a rebuild writes it.
class BrokenRows final : public ports::LedgerRebuild {
 public:
  explicit BrokenRows(Stage& stage) : stage_(stage) {}

  Result<std::vector<model::Operation>> Unfinished() override { return base().Unfinished(); }
  Result<std::vector<std::string>> Rewrite(const ports::RebuiltOperation& asked) override {
    ports::RebuiltOperation rebuilt = asked;
    if (stage_.mutant == Mutant::kRebuildForgetsKeys) rebuilt.operation.key_hash.reset();
    if (stage_.mutant == Mutant::kRebuildGivesNewIds) {
      for (model::Vm& vm : rebuilt.vms) vm.id.value.bytes[15] ^= 1;
      for (model::Item& item : rebuilt.operation.items) item.subject.bytes[15] ^= 1;
    }
    return base().Rewrite(rebuilt);
  }
  Status RaiseSequence(std::int64_t newest) override {
    if (stage_.mutant == Mutant::kRebuildKeepsSequence) return {};
    return base().RaiseSequence(newest);
  }
  Status SetUnread(const model::HostId& host, bool is_unread) override {
    return base().SetUnread(host, is_unread);
  }

 private:
  ports::LedgerRebuild& base() const { return *stage_.ledger; }

  Stage& stage_;
};

// A host as a rebuild reads it.
class BrokenReading final : public ForwardingHypervisor {
 public:
  BrokenReading(Stage& stage, std::unique_ptr<ports::Hypervisor> base)
      : ForwardingHypervisor(std::move(base)), stage_(stage) {}

  Result<std::vector<ports::DomainSighting>> List() override {
    auto seen = base_->List();
    if (!seen) return seen;
    if (stage_.mutant == Mutant::kRebuildSkipsMachines && !seen->empty()) seen->pop_back();
    if (stage_.mutant == Mutant::kRebuildTakesStrangers) {
      for (ports::DomainSighting& domain : *seen) Claim(domain);
    }
    return seen;
  }

 private:
  void Claim(ports::DomainSighting& domain) const {
    if (domain.label) return;
    model::Label label;
    label.ledger = stage_.ledger->Id();
    label.project.value = "even";
    label.key_hash = ToHex(Sha256(domain.name));
    label.fingerprint = label.key_hash;
    label.operation = model::OperationId{domain.id.value};
    label.sequence = 1'000;
    domain.label = std::move(label);
  }

  Stage& stage_;
};

}  // namespace

std::unique_ptr<ports::LedgerRebuild> MutatedRows(Stage& stage) {
  return std::make_unique<BrokenRows>(stage);
}

std::unique_ptr<ports::Hypervisor> MutatedReading(Stage& stage,
                                                  std::unique_ptr<ports::Hypervisor> host) {
  return std::make_unique<BrokenReading>(stage, std::move(host));
}

}  // namespace vmonce::sim
