#include "client/problem.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/json.h"

namespace vmonce::client {
namespace {

using boost::json::object;

constexpr std::size_t kForeignTextBytes = 200;

std::string Text(const object& document, std::string_view name) {
  const auto* value = document.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

std::optional<bool> Flag(const object& document, std::string_view name) {
  const auto* value = document.if_contains(name);
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->get_bool();
}

std::optional<std::chrono::seconds> Seconds(const object& document, std::string_view name) {
  const auto* value = document.if_contains(name);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return std::nullopt;
  return std::chrono::seconds(value->get_int64());
}

void ReadLists(const object& document, ApiProblem& problem) {
  if (const auto* fields = document.if_contains("fields"); fields && fields->is_array()) {
    for (const auto& field : fields->get_array()) {
      if (!field.is_object()) continue;
      problem.fields.emplace_back(Text(field.get_object(), "pointer"),
                                  Text(field.get_object(), "detail"));
    }
  }
  if (const auto* list = document.if_contains("differing"); list && list->is_array()) {
    for (const auto& pointer : list->get_array()) {
      if (pointer.is_string()) problem.differing.emplace_back(pointer.get_string());
    }
  }
}

ApiProblem Foreign(const HttpResponse& response) {
  ApiProblem problem;
  problem.status = response.status;
  problem.code = fmt::format("http_{}", response.status);
  problem.detail =
      fmt::format("the answer has status {} and is not of vmonce's API", response.status);
  if (response.status >= 300 && response.status < 400) {
    problem.detail += fmt::format(": a redirect to {}, which is never followed",
                                  response.Header("location").value_or("somewhere"));
  } else if (!response.body.empty()) {
    problem.detail += ": ";
    for (const char c : std::string_view(response.body).substr(0, kForeignTextBytes)) {
      problem.detail += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return problem;
}

}  // namespace

ApiProblem ReadProblem(const HttpResponse& response) {
  const auto document = ParseStrictJson(response.body);
  if (!document || !document->is_object()) return Foreign(response);
  const object& members = document->get_object();
  if (Text(members, "code").empty()) return Foreign(response);
  ApiProblem problem;
  problem.status = response.status;
  problem.is_document = true;
  problem.code = Text(members, "code");
  problem.title = Text(members, "title");
  problem.detail = Text(members, "detail");
  problem.is_retryable = Flag(members, "retryable").value_or(false);
  problem.retry_same_key = Flag(members, "retry_same_key");
  problem.retry_after = Seconds(members, "retry_after");
  problem.operation = Text(members, "operation");
  problem.vm = Text(members, "vm");
  problem.first_seen = Text(members, "first_seen");
  ReadLists(members, problem);
  return problem;
}

}  // namespace vmonce::client
