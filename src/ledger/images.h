// The rows of stored images. docs/ledger.md tells the tables.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ledger/transaction.h"
#include "model/image.h"
#include "ports/image_registry.h"

namespace vmonce::ledger {

// As ports::ImageRegistry says.
ports::ImageAddition AddImage(Tx& tx, const model::StoredImage& image);
ports::ImageRemoval RemoveImage(Tx& tx, std::string_view name);
std::vector<model::StoredImage> StoredImages(Db& db);

// Whether a claim may pin it: an image of the configuration, or one that is in the store now.
bool IsImageThere(Db& db, const model::Image& image);

}  // namespace vmonce::ledger
