// Sends a local file into the server's image store.
#pragma once

#include <expected>
#include <string>

#include "app/invocation.h"
#include "base/sha256.h"

namespace vmonce::app {

// The file's SHA-256, once the store has all of it; what stood in the way was told. A content that
// is there already is not sent again. Progress is one live line on a terminal. Ctrl-C ends it and
// drops what was sent; the server forgets what a killed sender leaves.
std::expected<Digest, ExitCode> UploadFile(const Invocation& run, const std::string& path);

}  // namespace vmonce::app
