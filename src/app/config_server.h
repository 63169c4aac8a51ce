// The section [server]: where the service listens, for whom, and how it is protected there.
#pragma once

#include "app/config.h"
#include "app/config_reader.h"

namespace vmonce::app {

// Beyond the loopback addresses a service must speak TLS, or say that a proxy does so for it;
// otherwise there is a mistake with its repairs.
void ReadServerConfig(ConfigTableReader table, ServerConfig& server);

}  // namespace vmonce::app
