// What worlds of one process hand on to each other; no history depends on it.
#pragma once

#include "sim/ledgers.h"
#include "sim/stacks.h"

namespace vmonce::sim {

// Used by one thread.
struct Workshop {
  Stacks stacks;
  Ledgers ledgers;
};

}  // namespace vmonce::sim
