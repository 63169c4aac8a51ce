// Reading `nft -j list ruleset`: does an input chain drop what a guest asks of DHCP?
#include <fmt/format.h>

#include <boost/json.hpp>

#include "app/doctor.h"
#include "app/json_text.h"
#include "base/json.h"

namespace vmonce::app {
namespace {

using boost::json::value;

constexpr std::int64_t kDhcpPort = 67;
// As deep as nft nests; a document that is deeper is not followed further.
constexpr int kDepth = 16;

// The bridge's name or DHCP's port stands anywhere in it: as itself, in a set, in a range.
bool Names(const value& node, std::string_view bridge, int depth = 0) {
  if (depth > kDepth) return false;
  if (node.is_string()) return std::string_view(node.get_string()) == bridge;
  if (node.is_int64()) return node.get_int64() == kDhcpPort;
  if (node.is_array()) {
    return std::ranges::any_of(node.get_array(), [bridge, depth](const value& item) {
      return Names(item, bridge, depth + 1);
    });
  }
  if (!node.is_object()) return false;
  return std::ranges::any_of(node.get_object(), [bridge, depth](const auto& member) {
    return Names(member.value(), bridge, depth + 1);
  });
}

bool Accepts(const value& expressions) {
  return expressions.is_array() &&
         std::ranges::any_of(expressions.get_array(), [](const value& expression) {
           return expression.is_object() && expression.get_object().contains("accept");
         });
}

std::string TableOf(const value& item) {
  return TextAt(item, "family") + " " + TextAt(item, "table");
}

}  // namespace

bool DropsDhcp(std::string_view ruleset, std::string_view bridge, std::string& chain) {
  const auto document = ParseStrictJson(ruleset);
  if (!document) return false;
  const auto items = ListAt(*document, "nftables");
  const auto lets_in = [&items, bridge](const std::string& table) {
    return std::ranges::any_of(items, [&table, bridge](const value& item) {
      const value* rule = At(item, "rule");
      const value* expressions = rule == nullptr ? nullptr : At(*rule, "expr");
      return expressions != nullptr && TableOf(*rule) == table && Accepts(*expressions) &&
             Names(*expressions, bridge);
    });
  };
  for (const value& item : items) {
    const value* base = At(item, "chain");
    if (base == nullptr || TextAt(*base, "hook") != "input") continue;
    // A drop in any table is final, whatever another one accepts.
    if (TextAt(*base, "policy") != "drop" || lets_in(TableOf(*base))) continue;
    const std::string family = TextAt(*base, "family");
    if (family != "ip" && family != "inet") continue;
    chain = TableOf(*base) + " " + TextAt(*base, "name");
    return true;
  }
  return false;
}

}  // namespace vmonce::app
