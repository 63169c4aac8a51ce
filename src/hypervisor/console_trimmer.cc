#include "hypervisor/console_trimmer.h"

#include <filesystem>
#include <system_error>

#include "hypervisor/console_file.h"
#include "model/console_limits.h"

namespace vmonce::hypervisor {

ConsoleTrimmer::ConsoleTrimmer(ConsoleTrimmerOptions options, Threads& threads, Logger& logger)
    : options_(std::move(options)),
      logger_(logger),
      thread_(threads.Spawn("consoles", [this, &threads](std::stop_token stop) {
        do {
          TrimAll();
        } while (threads.SleepFor(model::limits::kTrimConsolesEvery, stop));
      })) {}

void ConsoleTrimmer::TrimAll() {
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(options_.directory, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const Status trimmed = TrimConsoleFile(entry->path().string(), options_.file_bytes);
    if (trimmed || has_warned_) continue;
    has_warned_ = true;
    logger_.Warning("console_not_trimmed", {{"cause", trimmed.error().detail}});
  }
}

}  // namespace vmonce::hypervisor
