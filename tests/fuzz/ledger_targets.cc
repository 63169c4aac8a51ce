// Cursors of lists, which go out and come back through anybody's hands.
#include <memory>
#include <string>

#include "base/check.h"
#include "base/fake_clock.h"
#include "base/log.h"
#include "base/system.h"
#include "ledger/reads.h"
#include "ledger/sqlite_ledger.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {
namespace {

// Empty, in memory and only read.
struct EmptyLedger {
  FakeClock clock;
  std::unique_ptr<Random> random = NewSystemRandom();
  std::unique_ptr<Threads> threads = NewSystemThreads();
  std::unique_ptr<Logger> logger = NewNullLogger();
  std::unique_ptr<ledger::SqliteLedger> sqlite;

  EmptyLedger() {
    ledger::SqliteLedgerOptions options;
    options.has_checkpoint_thread = false;
    auto opened = ledger::SqliteLedger::Open(options, clock, *random, *threads, *logger);
    CHECK(opened.has_value());
    sqlite = std::move(*opened);
  }
};

template <typename Page>
void CheckPage(const Result<Page>& page) {
  if (page) {
    CHECK(page->rows.empty());
  } else {
    CHECK(page.error().code == ErrorCode::kInvalid);
  }
}

}  // namespace

void FuzzCursor(std::string_view input) {
  static EmptyLedger empty;
  const ports::Page page{10, std::string(input)};
  CheckPage(empty.sqlite->ListVms(model::ProjectId{"default"}, {}, page));
  CheckPage(empty.sqlite->ListOperations(model::ProjectId{"default"}, {}, page));
  if (const auto sequence = ledger::ParseSequenceCursor(input)) {
    CHECK(ledger::ParseSequenceCursor(ledger::SequenceCursor(*sequence)) == sequence);
  }
  if (const auto vm = ledger::ParseVmCursor(input)) {
    CHECK(ledger::ParseVmCursor(ledger::VmCursor(*vm)) == vm);
  }
}

}  // namespace vmonce::fuzz
