// Where a client command takes its token from. Never a flag: other people's processes see those.
#pragma once

#include <string>
#include <string_view>

#include "app/terminal.h"
#include "base/result.h"

namespace vmonce::app {

// The token for the server at `url` (of NormaliseBaseUrl()); "" when there is none. The first of:
// `file` (what --token-file names, "" when nothing was given), VMONCE_TOKEN, the file that
// VMONCE_TOKEN_FILE names, and the line for exactly this URL in PersonalTokensPath(). kInvalid,
// with what to do, for a file that others may read or that holds no token, and where the token
// would travel in clear text: http:// beyond the loopback address.
Result<std::string> FindToken(const std::string& url, const std::string& file,
                              const Environ& environment);

// $XDG_CONFIG_HOME/vmonce/tokens, or ~/.config/vmonce/tokens; "" without a home. Lines of "URL
// TOKEN"; empty ones, and those that begin with #, say nothing.
std::string PersonalTokensPath(const Environ& environment);

}  // namespace vmonce::app
