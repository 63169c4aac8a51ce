// Bounds of the image store, each with its reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace vmonce::model::limits {

// A list of a few hundred KiB, held in memory.
inline constexpr std::int64_t kStoredImages = 1'000;
// Far beyond any image; what the disk cannot hold is refused before the first byte.
inline constexpr std::int64_t kImageFileBytes = 1LL << 40;
// Of a kernel or an initrd: both are loaded into the guest's memory.
inline constexpr std::int64_t kBootFileBytes = 2LL << 30;
// One request of an upload: what a body may have.
inline constexpr std::size_t kImageChunkBytes = 1 << 20;
// Each holds a thread that answers reads while it writes.
inline constexpr std::size_t kImageUploads = 2;
// An upload that nobody goes on with is dropped then; a client retries for minutes.
inline constexpr Milliseconds kImageUploadIdle{600'000};
// A file that no image names yet is kept so long: its registration may be on the way.
inline constexpr Milliseconds kImageFileIdle{3'600'000};
// Written to the disk at this pace, so that the last sync of a large file is short.
inline constexpr std::int64_t kImageSyncBytes = 64 << 20;
// What the service itself needs to go on: the ledger grows beside the store.
inline constexpr std::int64_t kImageSpareBytes = 256 << 20;
// Read to tell what a file is.
inline constexpr std::size_t kImageHeaderBytes = 4 << 10;
// How often a sender begins anew after the server forgot: restarts in a row are few.
inline constexpr int kImageUploadRestarts = 20;
// How long one call sends a file to another machine: far below the deadline of a call, so that the
// last buffers are on the disk in time, and a delete of the VM is seen soon.
inline constexpr Milliseconds kImageSlice{10'000};
// What is sent at once: libvirt's own largest stream packet.
inline constexpr std::size_t kImageStreamBytes = 256 << 10;
// A create asks again so soon whether another one has sent the image.
inline constexpr Milliseconds kImageSentAgain{1'000};
// The timeline tells how far an image is at every so many percent: ten lines however large it is.
inline constexpr int kImageProgressPercent = 10;
// Only what nobody names goes: seldom is enough.
inline constexpr Milliseconds kImageSweepEvery{300'000};

}  // namespace vmonce::model::limits
