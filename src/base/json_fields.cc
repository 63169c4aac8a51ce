#include "base/json_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace vmonce {
namespace {

namespace json = boost::json;

// A name longer than any we know is quoted only in part, and is near to none of ours.
constexpr std::size_t kMaxShownBytes = 64;

// The least number of insertions, deletions, replacements and swaps of neighbours that make one of
// the other (optimal string alignment), over three rows. Both at most kMaxShownBytes long.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// Quoted as JSON does it, since an unknown name may hold anything, and cut between two characters.
std::string Shown(std::string_view name) {
  std::size_t length = std::min(name.size(), kMaxShownBytes);
  const auto is_inside_character = [&] {
    return length < name.size() && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80;
  };
  while (is_inside_character()) --length;
  return json::serialize(json::string(name.substr(0, length)));
}

std::string BoundsText(TextBounds bounds) {
  return bounds.min_bytes == 0
             ? fmt::format("a string of at most {} bytes", bounds.max_bytes)
             : fmt::format("a string of {} to {} bytes", bounds.min_bytes, bounds.max_bytes);
}

std::string BoundsText(CountBounds count, std::string_view container, std::string_view content) {
  return count.min == 0
             ? fmt::format("{} of at most {} {}", container, count.max, content)
             : fmt::format("{} of {} to {} {}", container, count.min, count.max, content);
}

bool Fits(const json::value& value, TextBounds bounds) {
  return value.is_string() && value.get_string().size() >= bounds.min_bytes &&
         value.get_string().size() <= bounds.max_bytes;
}

bool Fits(std::size_t size, CountBounds count) { return size >= count.min && size <= count.max; }

std::optional<std::int64_t> WholeNumber(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  // Values that did not come from ParseStrictJson may hold other kinds.
  constexpr double kExact = 9007199254740992.0;
  if (value.is_double() && std::abs(value.get_double()) <= kExact &&
      std::trunc(value.get_double()) == value.get_double()) {
    return static_cast<std::int64_t>(value.get_double());
  }
  if (value.is_uint64() && std::in_range<std::int64_t>(value.get_uint64())) {
    return static_cast<std::int64_t>(value.get_uint64());
  }
  return std::nullopt;
}

}  // namespace

JsonReader::JsonReader(const json::object& object, std::string pointer)
    : object_(object), pointer_(std::move(pointer)) {}

bool JsonReader::Has(std::string_view name) const { return object_.contains(name); }

bool JsonReader::IsNull(std::string_view name) {
  const json::value* value = Find(name);
  return value != nullptr && value->is_null();
}

void JsonReader::Require(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (Find(name) == nullptr) AddProblem(name, "is required");
  }
}

std::optional<std::string> JsonReader::String(std::string_view name, TextBounds bounds) {
  const json::value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!Fits(*value, bounds)) {
    AddProblem(name, fmt::format("must be {}", BoundsText(bounds)));
    return std::nullopt;
  }
  return std::string(value->get_string());
}

std::optional<std::string> JsonReader::OneOf(std::string_view name,
                                             std::initializer_list<std::string_view> allowed) {
  const json::value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) {
    const std::string_view text = value->get_string();
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return std::string(text);
  }
  AddProblem(name, fmt::format("must be one of {}", fmt::join(allowed, ", ")));
  return std::nullopt;
}

std::optional<std::int64_t> JsonReader::Int(std::string_view name, IntRange range) {
  const json::value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = WholeNumber(*value);
  if (!number || *number < range.min || *number > range.max) {
    AddProblem(name, fmt::format("must be a whole number from {} to {}", range.min, range.max));
    return std::nullopt;
  }
  return number;
}

std::optional<bool> JsonReader::Bool(std::string_view name) {
  const json::value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) {
    AddProblem(name, "must be true or false");
    return std::nullopt;
  }
  return value->get_bool();
}

const json::object* JsonReader::Object(std::string_view name) {
  const json::value* value = Find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) AddProblem(name, "must be an object");
  return value->if_object();
}

const json::array* JsonReader::Array(std::string_view name, CountBounds count) {
  const json::value* value = Find(name);
  if (value == nullptr) return nullptr;
  const json::array* array = value->if_array();
  if (array != nullptr && Fits(array->size(), count)) return array;
  AddProblem(name, fmt::format("must be {}", BoundsText(count, "an array", "elements")));
  return nullptr;
}

std::optional<std::vector<std::string>> JsonReader::Strings(std::string_view name,
                                                            CountBounds count, TextBounds each) {
  const json::array* array = Array(name, count);
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::value& element = (*array)[i];
    if (Fits(element, each)) {
      strings.emplace_back(element.get_string());
    } else {
      problems_.push_back({Pointer(name, i),
                           fmt::format("element {} of {} must be {}", i, name, BoundsText(each))});
    }
  }
  if (strings.size() != array->size()) return std::nullopt;
  return strings;
}

std::optional<std::map<std::string, std::string>> JsonReader::StringMap(std::string_view name,
                                                                        CountBounds count,
                                                                        TextBounds each) {
  const json::value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const json::object* object = value->if_object();
  if (object == nullptr || !Fits(object->size(), count)) {
    AddProblem(name, fmt::format("must be {}", BoundsText(count, "an object", "strings")));
    return std::nullopt;
  }
  std::map<std::string, std::string> strings;
  for (const auto& member : *object) {
    if (Fits(member.value(), each)) {
      strings.emplace(member.key(), member.value().get_string());
    } else {
      problems_.push_back(
          {JsonPointer(Pointer(name), member.key()),
           fmt::format("{} in {} must be {}", Shown(member.key()), name, BoundsText(each))});
    }
  }
  if (strings.size() != object->size()) return std::nullopt;
  return strings;
}

std::string JsonReader::Pointer(std::string_view name) const { return JsonPointer(pointer_, name); }

std::string JsonReader::Pointer(std::string_view name, std::size_t index) const {
  return JsonPointer(Pointer(name), fmt::format("{}", index));
}

void JsonReader::AddProblem(std::string_view name, std::string_view what) {
  Find(name);
  problems_.push_back({Pointer(name), fmt::format("{} {}", name, what)});
}

void JsonReader::Add(std::vector<FieldProblem> problems) {
  for (FieldProblem& problem : problems) problems_.push_back(std::move(problem));
}

std::vector<FieldProblem> JsonReader::Finish() {
  for (const auto& member : object_) {
    const std::string_view name = member.key();
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) AddUnknown(name);
  }
  return std::exchange(problems_, {});
}

const json::value* JsonReader::Find(std::string_view name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
  return object_.if_contains(name);
}

void JsonReader::AddUnknown(std::string_view name) {
  std::string nearest;
  // Up to a third of the letters may be wrong: more would suggest names that have nothing to do
  // with it.
  std::size_t nearest_distance =
      name.size() <= kMaxShownBytes ? std::max<std::size_t>(1, name.size() / 3) + 1 : 0;
  for (const std::string& candidate : known_) {
    if (nearest_distance == 0) break;
    const std::size_t distance = EditDistance(name, candidate);
    if (distance < nearest_distance) {
      nearest = candidate;
      nearest_distance = distance;
    }
  }
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
  problems_.push_back({Pointer(name), fmt::format("{} is not known here{}", Shown(name), hint)});
}

}  // namespace vmonce
