// Completion scripts for shells. Names of VMs, images and hosts are asked of the server as they are
// typed, for two seconds at most.
#pragma once

#include <string>

#include "app/command_doc.h"

namespace vmonce::app {

std::string BashCompletion(const CommandDoc& root);
std::string ZshCompletion(const CommandDoc& root);
std::string FishCompletion(const CommandDoc& root);

}  // namespace vmonce::app
