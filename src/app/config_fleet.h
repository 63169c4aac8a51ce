// The lists of the configuration: hosts and images.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/config_document.h"
#include "app/config_reader.h"

namespace vmonce::app {

struct ConfigPlace {
  std::string directory;      // Where relative paths of the file start.
  std::string embedded_root;  // Of a host that names no URI.
};

// One host per table, or the default one when there is no table. Mistakes go to `findings`; then
// what is returned means nothing.
std::vector<HostConfig> ReadHosts(std::span<const ConfigNode* const> tables,
                                  const ConfigPlace& place, ConfigFindings& findings);

std::vector<model::Image> ReadImages(std::span<const ConfigNode* const> tables,
                                     const ConfigPlace& place, ConfigFindings& findings);

}  // namespace vmonce::app
