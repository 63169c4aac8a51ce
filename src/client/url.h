// The little of URLs that a client needs (RFC 3986).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vmonce::client {

// Everything but unreserved characters becomes %XX, so that the result fits into a path segment or
// a query.
std::string PercentEncode(std::string_view text);

// "http://host:port" or "https://host/prefix", without a slash at the end: the form in which two
// spellings of one server compare equal. kInvalid, with the repair, for another scheme,
// credentials, a query or a fragment.
Result<std::string> NormaliseBaseUrl(std::string_view url);

// `path` is already encoded; names and values of the query are encoded here.
std::string JoinUrl(std::string_view base, std::string_view path,
                    const std::vector<std::pair<std::string, std::string>>& query);

}  // namespace vmonce::client
