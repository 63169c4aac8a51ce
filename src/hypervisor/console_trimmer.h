// Keeps the consoles beneath an embedded root from filling the host's disk, at a pace of its own: a
// guest may print a megabyte a second.
#pragma once

#include <memory>
#include <string>

#include "base/log.h"
#include "base/threads.h"

namespace vmonce::hypervisor {

struct ConsoleTrimmerOptions {
  std::string directory;
  std::int64_t file_bytes = 0;  // A console that holds more loses its oldest half.
};

class ConsoleTrimmer final {
 public:
  // Begins at once, with what grew while nobody looked. `logger` outlives it.
  ConsoleTrimmer(ConsoleTrimmerOptions options, Threads& threads, Logger& logger);

 private:
  void TrimAll();

  const ConsoleTrimmerOptions options_;
  Logger& logger_;
  bool has_warned_ = false;               // The thread's own.
  const std::unique_ptr<Thread> thread_;  // Last: it ends before what it uses.
};

}  // namespace vmonce::hypervisor
