#include "service/images.h"

#include <algorithm>

namespace vmonce::service {

const model::Image* ImageCatalog::Resolve(std::string_view name) const {
  for (const model::Image& image : images_) {
    if (image.name == name) return &image;
    if (std::ranges::find(image.aliases, name) != image.aliases.end()) return &image;
  }
  return nullptr;
}

}  // namespace vmonce::service
