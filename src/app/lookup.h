// From what a person types to one VM.
#pragma once

#include <boost/json.hpp>
#include <expected>
#include <string>
#include <string_view>

#include "app/invocation.h"

namespace vmonce::app {

// `name_or_id`: an id is taken as it is; a name must stand for exactly one VM that is not deleted
// (or for one deleted VM, when no other has it). Several are an error that lists them. On failure
// everything has been said on stderr.
std::expected<boost::json::value, ExitCode> LookUpVm(const Invocation& run,
                                                     std::string_view name_or_id);

// How messages speak of a VM: its name, or its id.
std::string NameOf(const boost::json::value& vm);

}  // namespace vmonce::app
