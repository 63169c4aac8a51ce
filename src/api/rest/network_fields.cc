#include "api/rest/network_fields.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "model/forward_limits.h"
#include "model/network.h"

namespace vmonce::rest {
namespace {

namespace limits = model::limits;

model::Forward ReadForward(JsonReader& reader) {
  model::Forward forward;
  reader.Require({"guest_port"});
  forward.guest_port =
      static_cast<int>(reader.Int("guest_port", {1, limits::kPortMax}).value_or(0));
  forward.host_port = static_cast<int>(
      reader.Int("host_port", {limits::kHostPortMin, limits::kPortMax}).value_or(0));
  const auto protocol = reader.OneOf("protocol", {"tcp", "udp"});
  forward.protocol = model::ParseProtocol(protocol.value_or("tcp")).value_or(forward.protocol);
  return forward;
}

// What only all elements together tell.
void CheckForwards(const model::CreateIntent& intent, JsonReader& reader) {
  std::set<std::pair<model::Protocol, int>> guest_ports;
  std::set<model::HostPort> host_ports;
  for (std::size_t i = 0; i < intent.forwards.size(); ++i) {
    const model::Forward& forward = intent.forwards[i];
    const auto add = [&](std::string_view member, std::string detail) {
      reader.Add({{reader.Pointer("forward", i) + "/" + std::string(member), std::move(detail)}});
    };
    if (!guest_ports.insert({forward.protocol, forward.guest_port}).second) {
      add("guest_port", fmt::format("guest_port {} is forwarded twice", forward.guest_port));
    }
    if (forward.host_port == 0) continue;
    if (!host_ports.insert({forward.protocol, forward.host_port}).second) {
      add("host_port", fmt::format("host_port {} is asked for twice", forward.host_port));
    }
    if (intent.count > 1) {
      add("host_port", "host_port must be absent in a batch: each VM gets its own");
    }
  }
}

}  // namespace

void ReadNetwork(JsonReader& reader, model::CreateIntent& intent) {
  if (const auto network = reader.String("network", {.max_bytes = limits::kNetworkBytes})) {
    intent.network = *network;
    if (!model::ParseNetwork(*network)) {
      reader.AddProblem("network",
                        "must be user, the name of a network, or bridge: and the name of a bridge");
    }
  }
  const boost::json::array* array = reader.Array("forward", {.max = limits::kForwards});
  if (array == nullptr) return;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const boost::json::value& element = (*array)[i];
    if (!element.is_object()) {
      reader.Add({{reader.Pointer("forward", i), fmt::format("element {} of forward must be an "
                                                             "object",
                                                             i)}});
      continue;
    }
    JsonReader inner(element.get_object(), reader.Pointer("forward", i));
    intent.forwards.push_back(ReadForward(inner));
    std::vector<FieldProblem> problems = inner.Finish();
    if (!problems.empty()) reader.Add(std::move(problems));
  }
  if (intent.forwards.size() == array->size()) CheckForwards(intent, reader);
  if (!array->empty() && intent.network != model::kUserNetwork) {
    reader.AddProblem("forward",
                      "needs the network user: in other networks a VM has an address of its own");
  }
}

}  // namespace vmonce::rest
