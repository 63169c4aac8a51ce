// What a command of the bench program was given: `name=value` words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace vmonce::bench {

// A name that is missing, unknown or no number ends the program with a sentence.
class Arguments {
 public:
  Arguments(int count, char** words);

  std::string Text(const std::string& name) const;
  std::string Text(const std::string& name, std::string_view otherwise) const;
  std::int64_t Number(const std::string& name) const;
  std::int64_t Number(const std::string& name, std::int64_t otherwise) const;
  double Seconds(const std::string& name) const;
  bool Has(const std::string& name) const { return words_.contains(name); }

 private:
  std::map<std::string, std::string> words_;
};

}  // namespace vmonce::bench
