#include "model/host.h"

#include <array>

#include "model/words.h"

namespace vmonce::model {
namespace {

constexpr std::array<std::string_view, 3> kHostStates = {"active", "draining", "dead"};

}  // namespace

std::string_view ToString(HostState state) { return WordOf(kHostStates, state); }

std::optional<HostState> ParseHostState(std::string_view text) {
  return EnumOf<HostState>(kHostStates, text);
}

}  // namespace vmonce::model
