// From the flags of `create` to the body of POST /v1/vms.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vmonce::app {

// Only what was given is sent, so that the server's defaults, not ours, fill in the rest.
struct CreateFields {
  std::string name, image, memory, disk, hostname, user_data_file, desired, restart;
  std::optional<int> cpus, count;
  std::vector<std::string> ssh_key_files, labels, forwards;
  std::string network;
};

// Reads the files named. kInvalid, with the repair, for what the person must mend; the errors of
// ReadWholeFile for files. User data that is no text (JSON could not carry it) goes as base64.
Result<boost::json::object> BuildCreateBody(const CreateFields& fields);

// "512", "512M", "2GiB": in MiB; "10", "10G", "1TiB": in GiB. A bare number is in that unit.
std::optional<int> ParseMemoryMib(std::string_view text);
std::optional<int> ParseDiskGib(std::string_view text);

// "22", "8022:22", "53/udp", "5353:53/udp": [HOST_PORT:]GUEST_PORT[/PROTOCOL], as the API's object.
std::optional<boost::json::object> ParseForward(std::string_view text);

}  // namespace vmonce::app
