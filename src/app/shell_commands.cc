// completion, man: what a shell and a reader need, made from the table that makes the help.
#include <fmt/format.h>

#include <filesystem>

#include "app/command_line.h"
#include "app/commands.h"
#include "app/completion.h"
#include "app/exit_code.h"
#include "app/man_page.h"
#include "base/file.h"

namespace vmonce::app {
namespace {

struct ManFlags {
  std::string command, directory;
};

ExitCode RunCompletion(const Invocation& run, const std::string& shell) {
  const CommandDoc root = DescribeCommandLine();
  if (shell == "bash") {
    run.world.terminal.Out(BashCompletion(root));
  } else if (shell == "zsh") {
    run.world.terminal.Out(ZshCompletion(root));
  } else if (shell == "fish") {
    run.world.terminal.Out(FishCompletion(root));
  } else {
    run.messages.Say("error: completion is made for bash, zsh or fish");
    return ExitCode::kUsage;
  }
  return ExitCode::kDone;
}

Status WritePages(const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return std::unexpected(ErrnoError(failed.value(), directory));
  const CommandDoc root = DescribeCommandLine();
  const auto write = [&directory](const CommandDoc& command, const std::string& page) {
    return WriteFileAtomically(directory + "/" + ManFileName(command), page, 0644);
  };
  if (auto written = write(root, ManPage(root, ExitCodeHelp())); !written) return written;
  for (const CommandDoc& command : root.children) {
    if (auto written = write(command, CommandManPage(command)); !written) return written;
  }
  return {};
}

ExitCode RunMan(const Invocation& run, const ManFlags& flags) {
  if (!flags.directory.empty()) {
    const Status written = WritePages(flags.directory);
    if (written) return ExitCode::kDone;
    run.messages.Say("error: " + written.error().detail);
    return ExitCode::kFailed;
  }
  const CommandDoc root = DescribeCommandLine();
  if (flags.command.empty()) {
    run.world.terminal.Out(ManPage(root, ExitCodeHelp()));
    return ExitCode::kDone;
  }
  for (const CommandDoc& command : root.children) {
    if (command.path.back() != flags.command) continue;
    run.world.terminal.Out(CommandManPage(command));
    return ExitCode::kDone;
  }
  run.messages.Say(fmt::format("error: there is no command {}", flags.command));
  run.messages.Say("  repair: `vmonce --help` shows the commands");
  return ExitCode::kUsage;
}

}  // namespace

void AddShellCommands(CLI::App& app, ClientCommand& chosen) {
  auto* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto shell = std::make_shared<std::string>();
  completion->add_option("bash|zsh|fish", *shell, "For which shell")->required();
  completion->callback([&chosen, shell] {
    chosen = [shell](const Invocation& run) { return RunCompletion(run, *shell); };
  });
  auto* man = app.add_subcommand("man", "Print a man page: vmonce man create | man -l -");
  const auto flags = std::make_shared<ManFlags>();
  man->add_option("COMMAND", flags->command, "Of which command (default: of vmonce itself)");
  man->add_option("--directory", flags->directory, "Write all pages there instead")
      ->type_name("DIR");
  man->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return RunMan(run, *flags); };
  });
}

}  // namespace vmonce::app
