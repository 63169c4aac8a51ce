#include "hypervisor/marker.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/json.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::string_view kVolumePrefix = "vmonce-marker.";

}  // namespace

std::string WriteMarker(const model::HostMarker& marker) {
  return boost::json::serialize(
      boost::json::object{{"ledger", marker.ledger.value}, {"host", marker.host.value}});
}

Result<model::HostMarker> ParseMarker(std::string_view text) {
  const auto unreadable = [] {
    return Fail(ErrorCode::kConflict, "the host's marker cannot be read; another program wrote it");
  };
  const auto value = ParseStrictJson(text);
  if (!value || !value->is_object()) return unreadable();
  const auto* ledger = value->get_object().if_contains("ledger");
  const auto* host = value->get_object().if_contains("host");
  if (ledger == nullptr || !ledger->is_string() || host == nullptr || !host->is_string()) {
    return unreadable();
  }
  return model::HostMarker{.ledger = {std::string(ledger->get_string())},
                           .host = {std::string(host->get_string())}};
}

std::string MarkerVolumeName(const model::HostMarker& marker) {
  return fmt::format("{}{}.{}", kVolumePrefix, marker.ledger.value, marker.host.value);
}

std::optional<model::HostMarker> ParseMarkerVolumeName(std::string_view name) {
  if (!name.starts_with(kVolumePrefix)) return std::nullopt;
  name.remove_prefix(kVolumePrefix.size());
  const std::size_t dot = name.find('.');  // A ledger's id has none; a host's may.
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return std::nullopt;
  return model::HostMarker{.ledger = {std::string(name.substr(0, dot))},
                           .host = {std::string(name.substr(dot + 1))}};
}

Result<bool> JudgeMarkers(const std::vector<model::HostMarker>& found,
                          const model::HostMarker& wanted, bool may_write) {
  for (const model::HostMarker& other : found) {
    if (other == wanted) continue;
    return Fail(
        ErrorCode::kConflict,
        fmt::format("the host carries the marker of ledger {}, host {}, and not of ledger "
                    "{}, host {}; nothing was touched",
                    other.ledger.value, other.host.value, wanted.ledger.value, wanted.host.value));
  }
  if (!found.empty()) return false;
  if (may_write) return true;
  return Fail(
      ErrorCode::kConflict,
      fmt::format("host {} was registered before and now carries no marker: is this another "
                  "machine, or an emptied disk? Nothing was touched",
                  wanted.host.value));
}

}  // namespace vmonce::hypervisor
