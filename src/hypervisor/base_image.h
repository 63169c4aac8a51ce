// What a base image on this machine is, asked of qemu-img.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vmonce::hypervisor {

// Answers its virtual size in bytes. kNotFound: it does not exist. kRefused: it is not of that
// format, or names another file itself (a backing or data file would let whoever made the image
// read any file of the host). kUnavailable: it could not be read now. The format is never guessed.
Result<std::int64_t> InspectBaseImage(const std::string& path, const std::string& format);

// The same judgement of `qemu-img info --output=json`'s text. Pure.
Result<std::int64_t> JudgeBaseImage(const std::string& path, std::string_view info);

}  // namespace vmonce::hypervisor
