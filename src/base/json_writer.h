// JSON text, member by member, straight into a string: for what is written often and not looked at
// before it goes. What is to be compared or changed is a value (json.h).
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace vmonce {

// `text` in quotes, with the fewest escapes (RFC 8785 section 3.2.2.2). Precondition: it is UTF-8.
void AppendJsonString(std::string& out, std::string_view text);

// Precondition of all: the calls in their order make one value. Nesting is not checked.
class JsonWriter {
 public:
  // Appends to `out`, which outlives it.
  explicit JsonWriter(std::string& out) : out_(out) {}

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  // Of the value that comes next.
  void Name(std::string_view name) {
    Separate();
    AppendJsonString(out_, name);
    out_ += ':';
    needs_comma_ = false;
  }

  void Value(std::string_view text) {
    Separate();
    AppendJsonString(out_, text);
  }
  void Value(const std::string& text) { Value(std::string_view(text)); }
  void Value(const char* text) { Value(std::string_view(text)); }
  // A number or a truth.
  template <std::integral T>
  void Value(T value) {
    if constexpr (std::same_as<T, bool>) {
      Raw(value ? "true" : "false");
    } else {
      char digits[24];
      const auto written = std::to_chars(digits, digits + sizeof digits, value);
      Raw({digits, static_cast<std::size_t>(written.ptr - digits)});
    }
  }
  void Null() { Raw("null"); }
  // A value that is text already.
  void Raw(std::string_view json) {
    Separate();
    out_ += json;
  }

  template <typename T>
  void Member(std::string_view name, const T& value) {
    Name(name);
    Value(value);
  }

 private:
  void Begin(char bracket) {
    Separate();
    out_ += bracket;
    needs_comma_ = false;
  }
  void End(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
  }
  void Separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace vmonce
