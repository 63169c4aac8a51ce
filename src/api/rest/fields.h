// The members of request bodies: what each may hold. What is wrong is told to the reader, all of it
// at once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "model/intent.h"

namespace vmonce::rest {

// Every member of a create but user data, with the defaults of what is absent. What it answers
// means nothing when the reader has problems.
model::CreateIntent ReadIntent(JsonReader& reader);

// `user_data` (text) or `user_data_base64`, not both.
struct UserData {
  const char* member = nullptr;  // Which of the two; null when there is none.
  std::string bytes;             // Decoded.
};
UserData ReadUserData(JsonReader& reader);

// The name of a VM, or of a batch of `count`, whose last and longest name must be valid too.
std::optional<std::string> ReadName(JsonReader& reader, int count);
std::optional<std::map<std::string, std::string>> ReadLabels(JsonReader& reader);
std::optional<model::Desired> ReadDesired(JsonReader& reader);
std::optional<model::RestartPolicy> ReadRestart(JsonReader& reader);

// RFC 1123 section 2.1: labels of letters, digits and hyphens, at most 63 bytes each and 253 in
// all; of several the last is not a number, so that no IP address is one.
bool IsValidHostname(std::string_view hostname);

// One line of authorized_keys without options: a type of ssh-…, ecdsa-… or sk-…, a base64 key, and
// a comment if any.
bool IsValidSshKey(std::string_view line);

}  // namespace vmonce::rest
