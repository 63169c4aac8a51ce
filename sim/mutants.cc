#include "sim/mutants.h"

#include "sim/stage.h"

namespace vmonce::sim {

std::string_view ToString(Mutant) { return ""; }
std::optional<Mutant> ParseMutant(std::string_view) { return std::nullopt; }
std::vector<Mutant> AllMutants() { return {}; }
std::unique_ptr<ports::Ledger> Mutated(Stage&, std::unique_ptr<ports::Ledger> ledger) {
  return ledger;
}
std::unique_ptr<ports::Hypervisor> Mutated(Stage&, std::size_t, ports::Ledger&,
                                           std::unique_ptr<ports::Hypervisor> host) {
  return host;
}
engine::SagaTable Mutated(Stage&, engine::SagaTable sagas) { return sagas; }
Milliseconds SettleOf(const Stage&, Milliseconds settle) { return settle; }

}  // namespace vmonce::sim
