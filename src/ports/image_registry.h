// The doors to what the ledger knows of images: those of the store, and the files of the
// configuration. Calls block; each is one transaction, with the errors of ports/ledger.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_identity.h"
#include "base/result.h"
#include "model/stored_image.h"

namespace vmonce::ports {

struct ImageAddition {
  enum class Kind {
    kAdded,
    kThere,      // The same content under the same name; aliases were moved all the same.
    kNameTaken,  // `in_the_way` is in use for another image. Nothing was written.
    kFull,       // limits::kStoredImages are there. Nothing was written.
  };
  Kind kind = Kind::kAdded;
  model::StoredImage image;  // As it is now, with all its aliases.
  std::string in_the_way;
};

struct ImageRemoval {
  enum class Kind { kRemoved, kAbsent, kInUse };
  Kind kind = Kind::kRemoved;
  std::int64_t users = 0;    // VMs that are not deleted, in all projects: kInUse.
  model::StoredImage image;  // kRemoved.
};

// Thread-safe.
class ImageRegistry {
 public:
  virtual ~ImageRegistry() = default;

  // Names and aliases are unique together. An alias that another stored image has moves to this
  // one; a name never does. `added` and the aliases that are there already are the registry's.
  virtual Result<ImageAddition> AddImage(const model::StoredImage& image) = 0;
  // By name, never by alias. Decided in the transaction that claims take their turn with: a create
  // is either counted here, or finds the image gone (DeclineReason::kImageGone).
  virtual Result<ImageRemoval> RemoveImage(std::string_view name) = 0;
  // Sorted by name.
  virtual Result<std::vector<model::StoredImage>> StoredImages() = 0;
};

struct FileVerdict {
  // Disks that were made over the file as it was before: VMs that are not deleted, accepted before
  // it became what it is now, and that may have a disk. 0: it is what they stand on.
  std::int64_t users = 0;
  bool is_changed() const { return users > 0; }
};

// The configuration's files that overlays stand on, by path. Thread-safe.
class ImageFileRecords {
 public:
  virtual ~ImageFileRecords() = default;

  // Before an overlay is made over `now`: that is kept from then on as what must not change. What
  // was kept before gives way when no disk stands on it any more; otherwise nothing is written.
  virtual Result<FileVerdict> KeepFile(const std::string& path, const FileIdentity& now) = 0;
  // The same question without an overlay in mind; `now` is absent when nothing stands there. A file
  // that changed and that no disk stands on is forgotten.
  virtual Result<FileVerdict> CheckFile(const std::string& path,
                                        const std::optional<FileIdentity>& now) = 0;
};

}  // namespace vmonce::ports
