// Man pages, in man(7) macros.
#pragma once

#include <string>

#include "app/command_doc.h"

namespace vmonce::app {

// vmonce(1): all commands, the flags that every command takes, and what `footer` says.
std::string ManPage(const CommandDoc& root, const std::string& footer);

// vmonce-COMMAND(1): one command right below the program, with its own commands.
std::string CommandManPage(const CommandDoc& command);

// "vmonce.1", "vmonce-create.1"
std::string ManFileName(const CommandDoc& command);

}  // namespace vmonce::app
