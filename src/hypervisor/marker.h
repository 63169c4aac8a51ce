// The text form of a host's marker: how a host proves who it is (protocol section 8).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/host.h"

namespace vmonce::hypervisor {

// JSON, for a file.
std::string WriteMarker(const model::HostMarker& marker);
// kConflict: the text is no marker; what wrote it is not us.
Result<model::HostMarker> ParseMarker(std::string_view text);

// "vmonce-marker.<ledger>.<host>": an empty volume of that name, where a host has no files of ours.
std::string MarkerVolumeName(const model::HostMarker& marker);
std::optional<model::HostMarker> ParseMarkerVolumeName(std::string_view name);

// What Connect makes of the markers found: ok (true: one must be written now) or kConflict.
Result<bool> JudgeMarkers(const std::vector<model::HostMarker>& found,
                          const model::HostMarker& wanted, bool may_write);

}  // namespace vmonce::hypervisor
