// Tokens without the service: on the ledger of the configured state directory, while nobody serves
// it. How the first token of a service that requires tokens is made.
#pragma once

#include <boost/json.hpp>
#include <expected>
#include <string>
#include <vector>

#include "app/invocation.h"
#include "app/offline_state.h"

namespace vmonce::app {

// Each opens the ledger under its lock and closes it again. Refused, with what to do, while a
// service runs, and unless the state directory is there and the caller owns it: files of another
// owner would lock the service out of its own ledger.

// `wanted` is the body of POST /v1/tokens; `print` gets what it would answer.
ExitCode CreateTokenOffline(const Invocation& run, const OfflineFlags& flags,
                            const boost::json::object& wanted,
                            void (*print)(const Invocation&, const boost::json::value&));
std::expected<std::vector<boost::json::value>, ExitCode> ListTokensOffline(
    const Invocation& run, const OfflineFlags& flags);
ExitCode RevokeTokenOffline(const Invocation& run, const OfflineFlags& flags,
                            const std::string& id);

}  // namespace vmonce::app
