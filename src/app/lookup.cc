#include "app/lookup.h"

#include <fmt/format.h>

#include "app/json_text.h"
#include "base/uuid.h"
#include "client/url.h"

namespace vmonce::app {

using boost::json::value;

std::string NameOf(const value& vm) {
  const std::string name = TextAt(vm, "name");
  return name.empty() ? TextAt(vm, "id") : name;
}

std::expected<value, ExitCode> LookUpVm(const Invocation& run, std::string_view name_or_id) {
  if (ParseUuid(name_or_id)) {
    const auto result = Get(run, "/v1/vms/" + client::PercentEncode(name_or_id));
    if (!result.IsSuccess()) {
      return std::unexpected(ReportFailure(run, fmt::format("VM {}", name_or_id), result));
    }
    return result.json;
  }
  const Listing listing = GetAll(run, "/v1/vms", {{"name", std::string(name_or_id)}});
  if (listing.failure) {
    return std::unexpected(
        ReportFailure(run, fmt::format("looking up {}", name_or_id), *listing.failure));
  }
  std::vector<value> live;
  std::ranges::copy_if(listing.items, std::back_inserter(live),
                       [](const value& vm) { return TextAt(vm, "state") != "deleted"; });
  const auto& found = live.empty() ? listing.items : live;
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    run.messages.Say(fmt::format("error: there is no VM named {}", name_or_id));
    run.messages.Say("  repair: " + CommandHint(run, "list") + " shows what there is");
    return std::unexpected(ExitCode::kNotFound);
  }
  run.messages.Say(
      fmt::format("error: {} VMs are named {}; say which by its id:", found.size(), name_or_id));
  for (const value& vm : found) {
    run.messages.Say(fmt::format("  {}  {}  created {}", TextAt(vm, "id"), TextAt(vm, "state"),
                                 TextAt(vm, "created_at")));
  }
  return std::unexpected(ExitCode::kFailed);
}

}  // namespace vmonce::app
