// What was said about the configuration, and where: the file, the environment and the command line
// laid over each other into one tree. What it means is not looked at.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "app/config.h"
#include "app/config_document.h"
#include "app/config_reader.h"

namespace vmonce::app {

// Sections written as [[name]], any number of times.
bool IsConfigList(std::string_view section);

// The arguments are ReadConfig's. Nothing, with a mistake in `findings`, when the file cannot be
// used; an override that is none is a mistake and is passed over.
std::optional<ConfigNode> LoadConfigSources(const std::optional<std::string>& path,
                                            std::span<const std::string> overrides,
                                            const EnvironmentReader& environment,
                                            ConfigFindings& findings);

}  // namespace vmonce::app
