// The bench program: `vmonce_bench COMMAND name=value...` (commands.h).
#include <cstdio>
#include <string_view>

#include "bench/commands.h"

namespace {

struct Command {
  std::string_view name;
  void (*run)(const vmonce::bench::Arguments&);
};

constexpr Command kCommands[] = {
    {"appends", vmonce::bench::MeasureAppends}, {"commits", vmonce::bench::MeasureCommits},
    {"accept", vmonce::bench::MeasureAccept},   {"fill", vmonce::bench::FillLedger},
    {"get", vmonce::bench::MeasureGet},         {"create", vmonce::bench::MeasureCreate},
    {"replay", vmonce::bench::MeasureReplay},   {"storm", vmonce::bench::MeasureStorm},
    {"lives", vmonce::bench::MeasureLives},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    command.run(vmonce::bench::Arguments(argc - 2, argv + 2));
    return 0;
  }
  std::fputs("usage: vmonce_bench COMMAND name=value...; the commands are in bench/commands.h\n",
             stderr);
  return 2;
}
