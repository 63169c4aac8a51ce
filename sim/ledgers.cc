#include "sim/ledgers.h"

#include "base/check.h"

namespace vmonce::sim {

Ledgers::Ledgers() : logger_(NewNullLogger()), empty_(Open()), served_(Open()) {}

std::unique_ptr<ledger::SqliteLedger> Ledgers::Open() {
  ledger::SqliteLedgerOptions options;
  options.has_checkpoint_thread = false;
  auto opened = ledger::SqliteLedger::Open(options, clock_, same_for_all_, threads_, *logger_);
  CHECK_MSG(opened.has_value(), opened ? "" : opened.error().detail);
  return std::move(*opened);
}

ledger::SqliteLedger& Ledgers::Begin(Clock& clock) {
  clock_.Borrow(clock);
  CHECK(served_->CopyFrom(*empty_).has_value());
  return *served_;
}

void Ledgers::Copy() {
  if (!copy_) copy_ = Open();
  CHECK(copy_->CopyFrom(*served_).has_value());
}

void Ledgers::Restore() { CHECK(served_->CopyFrom(*copy_).has_value()); }

}  // namespace vmonce::sim
