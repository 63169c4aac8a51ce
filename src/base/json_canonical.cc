#include <double-conversion/double-to-string.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"
#include "base/json_writer.h"

namespace vmonce {
namespace {

namespace json = boost::json;

// UTF-8 sorts by code point. UTF-16 puts what lies beyond the basic plane (lead bytes F0 to F4,
// there surrogates from D800 on) before U+E000 to U+FFFF (lead bytes EE and EF); raising those two
// above F4 gives its order.
unsigned Utf16Rank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0xee || byte == 0xef ? byte + 0x10u : byte;
}

bool Utf16Less(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char x, char y) { return Utf16Rank(x) < Utf16Rank(y); });
}

void AppendDouble(std::string& out, double number) {
  CHECK(std::isfinite(number));
  using Converter = double_conversion::DoubleToStringConverter;
  char buffer[Converter::kMaxCharsEcmaScriptShortest + 1];
  double_conversion::StringBuilder builder(buffer, sizeof(buffer));
  CHECK(Converter::EcmaScriptConverter().ToShortest(number, &builder));
  out += builder.Finalize();
}

void AppendValue(std::string& out, const json::value& value);

void AppendObject(std::string& out, const json::object& object) {
  std::vector<const json::key_value_pair*> members;
  members.reserve(object.size());
  for (const auto& member : object) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return Utf16Less(a->key(), b->key()); });
  out += '{';
  for (const auto* member : members) {
    if (member != members.front()) out += ',';
    AppendJsonString(out, member->key());
    out += ':';
    AppendValue(out, member->value());
  }
  out += '}';
}

void AppendArray(std::string& out, const json::array& array) {
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out += ',';
    AppendValue(out, array[i]);
  }
  out += ']';
}

void AppendValue(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: out += "null"; return;
    case json::kind::bool_: out += value.get_bool() ? "true" : "false"; return;
    case json::kind::int64: JsonWriter(out).Value(value.get_int64()); return;
    case json::kind::uint64: JsonWriter(out).Value(value.get_uint64()); return;
    case json::kind::double_: AppendDouble(out, value.get_double()); return;
    case json::kind::string: AppendJsonString(out, value.get_string()); return;
    case json::kind::array: AppendArray(out, value.get_array()); return;
    case json::kind::object: AppendObject(out, value.get_object()); return;
  }
}

double AsDouble(const json::value& number) {
  if (number.is_int64()) return static_cast<double>(number.get_int64());
  if (number.is_uint64()) return static_cast<double>(number.get_uint64());
  return number.get_double();
}

class Comparison {
 public:
  explicit Comparison(std::size_t most) : most_(most) {}

  void Compare(const json::value& a, const json::value& b, const std::string& pointer) {
    if (IsFull()) return;
    if (a.is_object() && b.is_object()) {
      CompareObjects(a.get_object(), b.get_object(), pointer);
    } else if (a.is_array() && b.is_array()) {
      CompareArrays(a.get_array(), b.get_array(), pointer);
    } else if (!ScalarsEqual(a, b)) {
      Report(pointer);
    }
  }

  std::vector<std::string> Take() { return std::move(found_); }

 private:
  bool IsFull() const { return found_.size() >= most_; }
  void Report(std::string pointer) {
    if (!IsFull()) found_.push_back(std::move(pointer));
  }

  // Only called when at least one side is no container, or the two are of different kinds of
  // container.
  static bool ScalarsEqual(const json::value& a, const json::value& b) {
    // Below 2^53, where values come from, no two whole numbers share a double.
    if (a.is_number() && b.is_number()) return AsDouble(a) == AsDouble(b);
    return a.kind() == b.kind() && a == b;
  }

  void CompareObjects(const json::object& a, const json::object& b, const std::string& pointer) {
    for (const auto& member : a) {
      if (IsFull()) return;
      const std::string place = JsonPointer(pointer, member.key());
      const json::value* other = b.if_contains(member.key());
      if (other == nullptr) {
        Report(place);
      } else {
        Compare(member.value(), *other, place);
      }
    }
    for (const auto& member : b) {
      if (IsFull()) return;
      if (!a.contains(member.key())) Report(JsonPointer(pointer, member.key()));
    }
  }

  void CompareArrays(const json::array& a, const json::array& b, const std::string& pointer) {
    const std::size_t both = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < std::max(a.size(), b.size()) && !IsFull(); ++i) {
      const std::string place = JsonPointer(pointer, fmt::format("{}", i));
      if (i < both) {
        Compare(a[i], b[i], place);
      } else {
        Report(place);
      }
    }
  }

  const std::size_t most_;
  std::vector<std::string> found_;
};

}  // namespace

std::string CanonicalJson(const json::value& value) {
  std::string out;
  AppendValue(out, value);
  return out;
}

std::vector<std::string> DifferingPointers(const json::value& a, const json::value& b,
                                           std::size_t most) {
  Comparison comparison(most);
  comparison.Compare(a, b, "");
  return comparison.Take();
}

std::string JsonPointer(std::string_view pointer, std::string_view token) {
  std::string out(pointer);
  out += '/';
  for (const char c : token) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace vmonce
