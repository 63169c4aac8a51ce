// The client's commands: each file adds its subcommand, its flags and what it does.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>

#include "app/invocation.h"

namespace vmonce::app {

// What the chosen subcommand does. Set while the command line is being read.
using ClientCommand = std::function<ExitCode(const Invocation&)>;

void AddCreate(CLI::App& app, ClientCommand& chosen);
void AddList(CLI::App& app, ClientCommand& chosen);
void AddGet(CLI::App& app, ClientCommand& chosen);
void AddDelete(CLI::App& app, ClientCommand& chosen);
void AddPower(CLI::App& app, ClientCommand& chosen);  // start, stop, reboot
void AddConsole(CLI::App& app, ClientCommand& chosen);
void AddOperations(CLI::App& app, ClientCommand& chosen);
void AddExplain(CLI::App& app, ClientCommand& chosen);
void AddImages(CLI::App& app, ClientCommand& chosen);
void AddKey(CLI::App& app, ClientCommand& chosen);
void AddHosts(CLI::App& app, ClientCommand& chosen);
void AddReconcile(CLI::App& app, ClientCommand& chosen);
void AddWait(CLI::App& app, ClientCommand& chosen);
void AddQuota(CLI::App& app, ClientCommand& chosen);
void AddRebuild(CLI::App& app, ClientCommand& chosen);
void AddToken(CLI::App& app, ClientCommand& chosen);
void AddConfig(CLI::App& app, ClientCommand& chosen);  // show, check
void AddDoctor(CLI::App& app, ClientCommand& chosen);
void AddShellCommands(CLI::App& app, ClientCommand& chosen);  // completion, man

}  // namespace vmonce::app
