// Images of the store that rebuilt machines stand on, known again.
#pragma once

#include <string>

#include "base/result.h"
#include "model/image.h"
#include "ports/image_registry.h"

namespace vmonce::workflows {

// Registers the image where the registry has none of its id, so that its files stay. The image's
// name or id becomes that of the registration. Answers what was done, for people; "" when nothing
// was. An image of the configuration, or one whose files are not named by content, is left alone.
Result<std::string> RegisterImage(ports::ImageRegistry& registry, model::Image& image);

}  // namespace vmonce::workflows
