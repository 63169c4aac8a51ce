#include "bench/arguments.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/check.h"

namespace vmonce::bench {

Arguments::Arguments(int count, char** words) {
  for (int i = 0; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t at = word.find('=');
    CHECK_MSG(at != std::string::npos, word + " is not name=value");
    words_[word.substr(0, at)] = word.substr(at + 1);
  }
}

std::string Arguments::Text(const std::string& name) const {
  const auto found = words_.find(name);
  CHECK_MSG(found != words_.end(), name + "=... is missing");
  return found->second;
}

std::string Arguments::Text(const std::string& name, std::string_view otherwise) const {
  return Has(name) ? Text(name) : std::string(otherwise);
}

std::int64_t Arguments::Number(const std::string& name) const {
  const std::string text = Text(name);
  char* end = nullptr;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  CHECK_MSG(!text.empty() && *end == '\0', fmt::format("{}={} is no number", name, text));
  return number;
}

std::int64_t Arguments::Number(const std::string& name, std::int64_t otherwise) const {
  return Has(name) ? Number(name) : otherwise;
}

double Arguments::Seconds(const std::string& name) const {
  const std::string text = Text(name);
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  CHECK_MSG(!text.empty() && *end == '\0', fmt::format("{}={} is no number", name, text));
  return seconds;
}

}  // namespace vmonce::bench
