// `vmonce serve --check`: would the service start with this configuration? Looks, and changes
// nothing.
#pragma once

#include <string>
#include <vector>

#include "app/config.h"
#include "base/clock.h"

namespace vmonce::app {

struct CheckLine {
  bool is_ok = true;
  std::string text;  // What was looked at and found; for a fault, what to do.

  bool operator==(const CheckLine&) const = default;
};

// The TLS files, valid at `now`; the state directory, the key file and the ledger in it. The
// configuration itself, its images' files among it, was checked when it was read; hosts are not
// asked (`vmonce doctor` does).
std::vector<CheckLine> CheckStart(const Config& config, Time now);

}  // namespace vmonce::app
