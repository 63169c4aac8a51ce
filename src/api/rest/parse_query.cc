#include "api/rest/parse_query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "model/idempotency.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace limits = model::limits;

// The detail names so many fields; the rest is in `fields`.
constexpr std::size_t kFieldsInDetail = 3;

}  // namespace

model::Problem InvalidRequest(std::vector<model::FieldProblem> fields) {
  model::Problem problem;
  problem.code = "invalid_request";
  for (std::size_t i = 0; i < fields.size() && i < kFieldsInDetail; ++i) {
    problem.detail += (i == 0 ? "" : "; ") + fields[i].detail;
  }
  if (fields.size() > kFieldsInDetail) {
    problem.detail += fmt::format("; and {} more", fields.size() - kFieldsInDetail);
  }
  problem.detail += ". Nothing was done and the key is not used up.";
  problem.fields = std::move(fields);
  return problem;
}

std::optional<std::string> QueryReader::Text(std::string_view name) {
  const std::string* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->empty()) {
    AddProblem(name, "must not be empty");
    return std::nullopt;
  }
  return *value;
}

std::optional<std::int64_t> QueryReader::Int(std::string_view name, IntRange range) {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  const bool is_number = error == std::errc() && rest == end && !text->empty();
  if (is_number && value >= range.min && value <= range.max) return value;
  AddProblem(name, fmt::format("must be a whole number from {} to {}", range.min, range.max));
  return std::nullopt;
}

std::optional<bool> QueryReader::Bool(std::string_view name) {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  if (*text == "true") return true;
  if (*text == "false") return false;
  AddProblem(name, "must be true or false");
  return std::nullopt;
}

std::optional<Uuid> QueryReader::Id(std::string_view name) {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const std::optional<Uuid> id = ParseUuid(*text);
  if (!id) AddProblem(name, "must be an id (a UUID)");
  return id;
}

std::optional<Digest> QueryReader::KeyHash() {
  constexpr std::string_view kName = "idempotency_key";
  const std::optional<std::string> text = Text(kName);
  if (!text) return std::nullopt;
  const std::string_view line = *text;
  const Result<std::optional<model::IdempotencyKey>> key = model::ParseKey({&line, 1});
  if (!key || !key->has_value()) {
    AddProblem(kName, key ? "must not be empty" : "is no valid key: " + key.error().detail);
    return std::nullopt;
  }
  return model::KeyHash(**key);
}

ports::Page QueryReader::Page() {
  ports::Page page;
  page.most =
      static_cast<int>(Int("limit", {1, limits::kPageItems}).value_or(limits::kPageItemsDefault));
  page.after = Text("cursor").value_or("");
  return page;
}

void QueryReader::AddProblem(std::string_view name, std::string what) {
  problems_.push_back({std::string(name), fmt::format("{} {}", name, what)});
}

std::optional<model::Problem> QueryReader::Finish() {
  for (const http::NamedValue& parameter : request_.query) {
    if (std::ranges::find(known_, parameter.name) != known_.end()) continue;
    // Quoted as JSON does it: it may hold anything.
    const std::string shown = boost::json::serialize(boost::json::string(parameter.name));
    const std::string hint = known_.empty() ? std::string("this route takes no parameter")
                                            : fmt::format("known are {}", fmt::join(known_, ", "));
    problems_.push_back(
        {parameter.name, fmt::format("the parameter {} is not known here; {}", shown, hint)});
  }
  if (problems_.empty()) return std::nullopt;
  return InvalidRequest(std::move(problems_));
}

const std::string* QueryReader::Find(std::string_view name) {
  known_.emplace_back(name);
  const std::string* found = nullptr;
  for (const http::NamedValue& parameter : request_.query) {
    if (parameter.name != name) continue;
    if (found != nullptr) {
      AddProblem(name, "must be given once");
      return nullptr;
    }
    found = &parameter.value;
  }
  return found;
}

std::optional<model::Problem> RefuseQuery(const http::Request& request) {
  return QueryReader(request).Finish();
}

}  // namespace vmonce::rest
