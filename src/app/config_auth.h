// Who may ask, and for how much: [auth], [quota] and the list of projects.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/config_document.h"
#include "app/config_reader.h"

namespace vmonce::app {

void ReadAuth(ConfigTableReader table, AuthConfig& auth);

void ReadQuota(ConfigTableReader table, QuotaConfig& quota);

// One project per table; what a table does not name is as in `others`. Mistakes go to `findings`.
std::vector<ProjectConfig> ReadProjects(std::span<const ConfigNode* const> tables,
                                        const std::string& directory, const QuotaConfig& others,
                                        ConfigFindings& findings);

}  // namespace vmonce::app
