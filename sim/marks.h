// Places that are rarely reached, and prove nothing unless they are: a long search fails when one
// never was.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/campaign.h"

namespace vmonce::sim {

// How many of the rare ones are among them.
std::size_t RareMarksReached(const std::map<std::string, std::uint64_t>& marks);

// The rare marks and the kinds of fault that a search never reached.
std::vector<std::string> Unreached(const Tally& tally);

}  // namespace vmonce::sim
