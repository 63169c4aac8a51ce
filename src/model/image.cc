#include "model/image.h"

#include <algorithm>
#include <array>

#include "model/limits.h"
#include "model/words.h"

namespace vmonce::model {
namespace {

constexpr std::array<std::string_view, 2> kImageKinds = {"disk", "kernel"};

}  // namespace

std::string_view ToString(ImageKind kind) { return WordOf(kImageKinds, kind); }

std::optional<ImageKind> ParseImageKind(std::string_view text) {
  return EnumOf<ImageKind>(kImageKinds, text);
}

bool IsImageName(std::string_view text) {
  return !text.empty() && text.size() <= limits::kNameBytes && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.' || c == ':';
         });
}

}  // namespace vmonce::model
