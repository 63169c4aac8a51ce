// The operating system's time, chance, threads and environment. Only app/ and tests build these.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/threads.h"

namespace vmonce {

std::unique_ptr<Clock> NewSystemClock();
std::unique_ptr<Random> NewSystemRandom();
std::unique_ptr<Threads> NewSystemThreads();

// Empty variables count as unset.
std::optional<std::string> Environment(const char* name);

}  // namespace vmonce
