// The images of the configuration.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/image.h"

namespace vmonce::service {

// Immutable; thread-safe.
class ImageCatalog {
 public:
  // Names and aliases are unique (the configuration was checked).
  explicit ImageCatalog(std::vector<model::Image> images) : images_(std::move(images)) {}

  // By name or alias; nullptr when there is none.
  const model::Image* Resolve(std::string_view name) const;
  const std::vector<model::Image>& All() const { return images_; }

 private:
  std::vector<model::Image> images_;
};

}  // namespace vmonce::service
