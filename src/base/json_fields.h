// Reads the members of one JSON object strictly and collects everything that is wrong with it, so
// that a person mends a request in one go. Every problem carries its RFC 6901 pointer and a
// sentence fit for an answer.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vmonce {

struct FieldProblem {
  std::string pointer;  // Of the member it is about, present or missing.
  std::string
      detail;  // A plain sentence without a full stop: "cpus must be a whole number from 1 to 64".

  bool operator==(const FieldProblem&) const = default;
};

// Both ends included.
struct IntRange {
  std::int64_t min;
  std::int64_t max;
};

// Lengths in bytes of UTF-8, both ends included.
struct TextBounds {
  std::size_t min_bytes = 1;
  std::size_t max_bytes;
};

// Counts of elements or members, both ends included.
struct CountBounds {
  std::size_t min = 0;
  std::size_t max;
};

// Use: ask for every member the object may have, then Finish(). What was never asked for is unknown
// and refused, so a member must be asked for even where its value does not matter.
//
// Every getter returns nothing when the member is absent (no problem: call Require first where that
// is one) and when it is not what was asked for (one problem). An explicit null is a value of its
// own, and a problem to all getters; where null means something, ask IsNull first.
//
// A value: not thread-safe. `object` must outlive it; the pointers it hands out live as long as the
// object.
class JsonReader {
 public:
  // `pointer` is the object's own place: empty for the whole body.
  JsonReader(const boost::json::object& object, std::string pointer);

  bool Has(std::string_view name) const;
  // Whether the member is there and null; it then counts as asked for, and no getter need be
  // called.
  bool IsNull(std::string_view name);
  // A problem for each that is absent: "image is required".
  void Require(std::initializer_list<std::string_view> names);

  std::optional<std::string> String(std::string_view name, TextBounds bounds);
  // One of the words of `allowed`.
  std::optional<std::string> OneOf(std::string_view name,
                                   std::initializer_list<std::string_view> allowed);
  // 3.0 is as whole as 3.
  std::optional<std::int64_t> Int(std::string_view name, IntRange range);
  std::optional<bool> Bool(std::string_view name);

  // Null when absent or wrong. Read the inner object with a reader of its own, at Pointer(name),
  // and Add its problems.
  const boost::json::object* Object(std::string_view name);
  const boost::json::array* Array(std::string_view name, CountBounds count);

  // An array of strings, and an object whose members are all strings (labels). Wrong elements are
  // problems at their own pointers, and the whole is then absent.
  std::optional<std::vector<std::string>> Strings(std::string_view name, CountBounds count,
                                                  TextBounds each);
  std::optional<std::map<std::string, std::string>> StringMap(std::string_view name,
                                                              CountBounds count, TextBounds each);

  // The place of a member of this object, and of an element of an array member.
  std::string Pointer(std::string_view name) const;
  std::string Pointer(std::string_view name, std::size_t index) const;

  // A problem found by the caller: `what` follows the name, "must not end with a hyphen". The name
  // then counts as asked for.
  void AddProblem(std::string_view name, std::string_view what);
  // What an inner reader found.
  void Add(std::vector<FieldProblem> problems);

  // All problems: first those of known members, in the order found, then one for each unknown
  // member, in the object's order, with the nearest known name where one is near: "cpu is not known
  // here; did you mean cpus?". Call once, last.
  std::vector<FieldProblem> Finish();

 private:
  // The member's value; null when absent. Marks the name as known.
  const boost::json::value* Find(std::string_view name);
  void AddUnknown(std::string_view name);

  const boost::json::object& object_;
  const std::string pointer_;
  std::vector<std::string> known_;
  std::vector<FieldProblem> problems_;
};

}  // namespace vmonce
