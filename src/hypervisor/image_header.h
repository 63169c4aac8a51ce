// What a file is, by its first bytes. Pure.
#pragma once

#include <string_view>

#include "base/result.h"

namespace vmonce::hypervisor {

enum class FileKind { kQcow2, kOther, kKernel };

// `header` is the file's beginning, up to limits::kImageHeaderBytes. Every disk may hold anything
// where no known format says otherwise: that is kOther. kInvalid, with what to do: a compressed
// file, a page, or a disk of a format that is not used here. Its tools are never let near such a
// file: some formats name others, which they would open.
Result<FileKind> KindOfFile(std::string_view header);

// A boot sector's signature: a partition table, or a boot loader.
bool HasBootSector(std::string_view header);

}  // namespace vmonce::hypervisor
