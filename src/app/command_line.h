// The command line as a whole: from arguments to a command that is ready to run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/command_doc.h"
#include "app/commands.h"
#include "app/serve.h"
#include "app/sim_command.h"

namespace vmonce::app {

struct ParsedClient {
  Globals globals;
  ClientCommand command;
};

// A command to run; the service; or the exit code of what has been answered already (help, version,
// a mistake).
using Parsed = std::variant<ParsedClient, ServeFlags, SimFlags, ExitCode>;

// `arguments` without the program's name.
Parsed ParseCommandLine(const std::vector<std::string>& arguments, Terminal& terminal,
                        const Environ& environment);

// The same as a table.
CommandDoc DescribeCommandLine();

// Runs a client's command to its exit code.
ExitCode RunClient(const ParsedClient& parsed, const World& world);

// The value of --timeout: as ParseDuration() reads it, or a bare number of seconds; at most
// limits::kClientWaitMax.
std::optional<Milliseconds> ParseTimeout(std::string_view text);

}  // namespace vmonce::app
