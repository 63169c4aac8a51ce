// Small files, read and replaced as wholes. Large ones (disks, images) have their own ways.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace vmonce {

// What a failed system call says about the world, by its errno: ENOENT and ENOTDIR are kNotFound;
// EEXIST and ENOTEMPTY kConflict; a full disk, quota, table or memory and a busy or slow device
// kUnavailable; missing rights, a read-only file system and what a kernel does not support
// kRefused; a bad name or kind kInvalid; the rest, EIO among it, kInternal. `what` goes in front of
// the errno's text. Only for calls that do nothing when they fail.
Error ErrnoError(int error_number, std::string_view what);

// The file's bytes. kInvalid when it is no regular file or longer than `max_bytes`.
Result<std::string> ReadWholeFile(const std::string& path, std::size_t max_bytes);

// Replaces the file at `path`, or makes it, so that at any moment, also after a crash or a power
// cut, a reader finds the old content or the new, never a mixture. On success the new content is on
// disk. `mode` is set exactly, whatever the umask. A symbolic link at `path` is replaced, not
// followed. Any error but kUnknown: the old content stands. kUnknown: the new content stands, but a
// power cut may take it back. A crash may leave a file named ".<name>.XXXXXX.tmp" beside it.
Status WriteFileAtomically(const std::string& path, std::string_view data, mode_t mode);

// The same for a file that must not exist yet: kConflict when anything stands at `path`, which is
// then untouched. Of any number of concurrent callers, in any process, one succeeds.
Status CreateFileAtomically(const std::string& path, std::string_view data, mode_t mode);

// The same, and from the moment anyone can see the file it is locked (flock(2), exclusive) by the
// descriptor answered: whoever else opens it and asks for the lock waits or is refused.
Result<UniqueFd> CreateFileLocked(const std::string& path, std::string_view data, mode_t mode);

}  // namespace vmonce
