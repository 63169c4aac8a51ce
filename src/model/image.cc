#include "model/image.h"

#include <array>

#include "model/words.h"

namespace vmonce::model {
namespace {

constexpr std::array<std::string_view, 2> kImageKinds = {"disk", "kernel"};

}  // namespace

std::string_view ToString(ImageKind kind) { return WordOf(kImageKinds, kind); }

std::optional<ImageKind> ParseImageKind(std::string_view text) {
  return EnumOf<ImageKind>(kImageKinds, text);
}

}  // namespace vmonce::model
