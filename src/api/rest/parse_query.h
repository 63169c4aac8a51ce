// Reads the query string strictly: every parameter is asked for once, and what was never asked for
// is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/sha256.h"
#include "base/uuid.h"
#include "http/message.h"
#include "model/problem.h"
#include "service/queries.h"

namespace vmonce::rest {

// Getters answer nothing when the parameter is absent, and when it is not what was asked for (one
// problem). Use: ask for all that the route knows, then Finish(). Not thread-safe; the request
// outlives it.
class QueryReader {
 public:
  explicit QueryReader(const http::Request& request) : request_(request) {}

  // Not empty.
  std::optional<std::string> Text(std::string_view name);
  std::optional<std::int64_t> Int(std::string_view name, IntRange range);
  std::optional<bool> Bool(std::string_view name);
  std::optional<Uuid> Id(std::string_view name);
  // One of an enum's words: `parse` is its ParseX(), `words` says which there are.
  template <typename Enum>
  std::optional<Enum> Word(std::string_view name, std::optional<Enum> (*parse)(std::string_view),
                           std::string_view words) {
    const std::optional<std::string> text = Text(name);
    if (!text) return std::nullopt;
    const std::optional<Enum> value = parse(*text);
    if (!value) AddProblem(name, "must be " + std::string(words));
    return value;
  }
  // The hash of the key that `idempotency_key` names, in either spelling.
  std::optional<Digest> KeyHash();
  // limit and cursor.
  ports::Page Page();

  void AddProblem(std::string_view name, std::string what);

  // `invalid_request` with all that was wrong. Call once, last.
  std::optional<model::Problem> Finish();

 private:
  const std::string* Find(std::string_view name);

  const http::Request& request_;
  std::vector<std::string> known_;
  std::vector<model::FieldProblem> problems_;
};

// For routes that know no parameter.
std::optional<model::Problem> RefuseQuery(const http::Request& request);

// `invalid_request` that tells of every field, in its detail too.
model::Problem InvalidRequest(std::vector<model::FieldProblem> fields);

}  // namespace vmonce::rest
