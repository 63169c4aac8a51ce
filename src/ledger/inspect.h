// Looks at a ledger's file without changing it, also while a service uses it.
#pragma once

#include <string>

#include "base/result.h"

namespace vmonce::ledger {

struct LedgerFile {
  int schema = 0;  // Of the file.
  int newest = 0;  // That this program knows.
  // A start would copy it and bring it up to date.
  bool IsOlder() const { return schema < newest; }
};

// kNotFound: there is no file yet; a start makes one. kConflict: it is no ledger, or a newer
// program's; a start refuses it. Other errors: it cannot be read.
Result<LedgerFile> InspectLedger(const std::string& path);

}  // namespace vmonce::ledger
