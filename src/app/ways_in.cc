#include "app/ways_in.h"

#include <fmt/format.h>

#include "app/json_text.h"

namespace vmonce::app {
namespace {

using boost::json::value;

constexpr std::int64_t kSshPort = 22;

// The one to connect to: who listens everywhere listens on no address that one could name.
std::string ListenerOf(const value& vm, const value& forward) {
  const std::string address = TextAt(forward, "host_address");
  return address == "0.0.0.0" ? TextAt(vm, "host") : address;
}

bool IsReserved(const value& forward) { return NumberAt(forward, "host_port", 0) > 0; }

}  // namespace

void SayWaysIn(const Invocation& run, const value& vm) {
  for (const value& forward : ListAt(vm, "forwards")) {
    if (!IsReserved(forward)) continue;
    const std::string protocol = TextAt(forward, "protocol");
    const std::int64_t guest_port = NumberAt(forward, "guest_port", 0);
    const std::int64_t host_port = NumberAt(forward, "host_port", 0);
    const std::string host = ListenerOf(vm, forward);
    run.messages.Say(guest_port == kSshPort && protocol == "tcp"
                         ? fmt::format("  way in: ssh -p {} USER@{}", host_port, host)
                         : fmt::format("  way in: {} {}:{} leads to port {} of the guest", protocol,
                                       host, host_port, guest_port));
  }
  for (const value& address : ListAt(vm, "addresses")) {
    if (address.is_string()) {
      run.messages.Say(fmt::format("  address: {}", std::string_view(address.get_string())));
    }
  }
}

std::string AddressesOf(const value& vm) {
  std::string cell;
  const auto add = [&cell](std::string_view text) {
    if (!cell.empty()) cell += ",";
    cell += text;
  };
  for (const value& address : ListAt(vm, "addresses")) {
    if (address.is_string()) add(address.get_string());
  }
  for (const value& forward : ListAt(vm, "forwards")) {
    if (!IsReserved(forward)) continue;
    add(fmt::format("{}:{}->{}{}", ListenerOf(vm, forward), NumberAt(forward, "host_port", 0),
                    NumberAt(forward, "guest_port", 0),
                    TextAt(forward, "protocol") == "udp" ? "/udp" : ""));
  }
  return cell.empty() ? "-" : cell;
}

}  // namespace vmonce::app
