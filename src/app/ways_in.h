// How one reaches a VM, for people.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "app/invocation.h"

namespace vmonce::app {

// A line for each forwarded port ("ssh: ssh -p 20022 USER@127.0.0.1"), and one for the guest's
// addresses. Nothing when there are neither.
void SayWaysIn(const Invocation& run, const boost::json::value& vm);

// For a table's cell: "192.168.122.7", or "127.0.0.1:20022->22", several between commas.
std::string AddressesOf(const boost::json::value& vm);

}  // namespace vmonce::app
