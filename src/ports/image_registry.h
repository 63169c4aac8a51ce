// The door to what the ledger knows of stored images. Calls block; each is one transaction, with
// the errors of ports/ledger.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace vmonce::ports
