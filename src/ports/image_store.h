// The door to the files of stored images. A file is named by the SHA-256 of its bytes, and never
// changes: overlays stand on it. Calls block.
//   kInvalid      the bytes are not what they are said to be; the same never succeeds
//   kNotFound     no such file, where a call says so
//   kUnavailable  nothing happened; try later (no room, a busy disk)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/sha256.h"

namespace vmonce::ports {

// What is sent of a file.
struct ImagePart {
  Digest digest{};        // Of the whole file.
  std::int64_t size = 0;  // Of the whole file.
  std::int64_t offset = 0;
  std::string_view bytes;  // May be empty: to ask what is there.
};

struct ImageProgress {
  std::int64_t received = 0;  // Where the next part begins.
  bool is_complete = false;   // It is in the store, and on the disk.
};

struct DiskFacts {
  std::string format;  // "qcow2" or "raw".
  std::int64_t virtual_bytes = 0;
};

// Thread-safe.
class ImageStore {
 public:
  virtual ~ImageStore() = default;

  // Writes the part when it is the next one; any other changes nothing, and the answer says where
  // to go on. The last part publishes the file, if its hash is what was said; if not, all of it is
  // dropped (kInvalid). An upload that ends in between leaves nothing behind for long.
  virtual Result<ImageProgress> Write(const ImagePart& part) = 0;
  virtual void Abandon(const Digest& digest) = 0;

  // kNotFound: not in the store.
  virtual Result<std::int64_t> SizeOf(const Digest& digest) = 0;
  // What kind of disk it is, by its header, and that no other file is needed to read it. kInvalid
  // says why it is none.
  virtual Result<DiskFacts> InspectDisk(const Digest& digest) = 0;
  // Whether a machine can boot such a raw disk at all.
  virtual Status CheckBootable(const Digest& digest) = 0;
  virtual Status CheckKernel(const Digest& digest) = 0;
  virtual std::string PathOf(const Digest& digest) const = 0;

  // ok when it is gone, or was never there.
  virtual Status Remove(const Digest& digest) = 0;
  // Removes every file that is not among `wanted` and is older than `age`, and uploads that nobody
  // goes on with. How many files went.
  virtual Result<int> Sweep(std::span<const Digest> wanted, Milliseconds age) = 0;
};

}  // namespace vmonce::ports
