// Who may ask: bearer tokens, each of one project and with one role.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "base/sha256.h"
#include "model/ids.h"

namespace vmonce::model {

// Each may do what those before it may, but for kMetrics.
enum class Role {
  kMetrics,  // Reads the metrics of the node, and nothing else; of the others only kAdmin may.
  kViewer,   // Reads what is of its project.
  kMember,   // Makes and changes what is of its project.
  kAdmin,    // The operator: hosts, images, tokens, the metrics of the node; VMs, of its project.
};
// "metrics", "viewer", "member", "admin".
std::string_view ToString(Role role);
std::optional<Role> ParseRole(std::string_view text);

// 1 to 63 letters, digits, '-', '_' and '.', the first no '.': it stands in labels on the hosts.
bool IsProjectName(std::string_view text);

// What is kept of a token: everything but its secret.
struct Token {
  TokenId id;
  Digest hash{};
  ProjectId project;
  Role role = Role::kViewer;
  std::string name;                   // For people.
  std::string prefix;                 // Of the secret, for people: "vmo_1a2b3c".
  std::optional<TokenId> created_by;  // Absent: made on the service's own machine.
  Time created{};
  std::optional<Time> expires;
  std::optional<Time> revoked;

  bool IsLive(Time now) const { return !revoked && (!expires || now < *expires); }
  bool operator==(const Token&) const = default;
};

// "vmo_" and 64 hexadecimal digits: 256 random bits, with a mark that scanners for leaked secrets
// find.
std::string NewTokenSecret(Random& random);
bool IsTokenSecret(std::string_view text);

// SHA-256 of the whole text. A slow, salted hash protects secrets that can be guessed; 256 random
// bits cannot be, with or without it, and a slow one would be paid at every request.
Digest TokenHash(std::string_view secret);

// Precondition: IsTokenSecret().
std::string TokenPrefix(std::string_view secret);

}  // namespace vmonce::model
