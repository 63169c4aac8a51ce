#include "api/rest/reply.h"

#include <fmt/format.h>

#include "api/rest/parse_headers.h"
#include "base/json_writer.h"
#include "base/rfc3339.h"
#include "http/problem.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
namespace limits = model::limits;
using std::chrono::seconds;

constexpr std::string_view kUnknownFailure = "hypervisor_refused";

// Of the time since the last record of the work: a step that takes a minute is asked for after 8 s.
constexpr int kPollDivisor = 8;

// Of an answer, beside its VMs: the operation.
constexpr std::size_t kHeadBytes = 1024;

bool IsInTable(std::string_view code) {
  return std::ranges::any_of(model::AllProblemKinds(),
                             [&](const model::ProblemKind& kind) { return kind.code == code; });
}

json::array FieldsJson(const std::vector<model::FieldProblem>& fields) {
  json::array array;
  for (const model::FieldProblem& field : fields) {
    array.push_back(json::object{{"pointer", field.pointer}, {"detail", field.detail}});
  }
  return array;
}

// Members that RFC 9457 calls extensions.
json::object Extensions(const model::Problem& problem) {
  json::object extra;
  if (problem.vm) extra["vm"] = VmUrl(*problem.vm);
  if (problem.first_seen) extra["first_seen"] = FormatRfc3339(*problem.first_seen);
  if (!problem.differing.empty()) {
    extra["differing"] = json::array(problem.differing.begin(), problem.differing.end());
  }
  if (!problem.fields.empty()) extra["fields"] = FieldsJson(problem.fields);
  return extra;
}

// The user took away what a failed create had left to retry (protocol section 6).
bool IsCancelledByUser(const service::Answer& answer) {
  return answer.is_replay && !answer.vms.empty() &&
         std::ranges::all_of(answer.vms, [](const model::Vm& vm) {
           return vm.state == model::VmState::kDeleting || vm.state == model::VmState::kDeleted ||
                  vm.delete_operation.has_value();
         });
}

bool IsUnfinished(const service::Answer& answer) {
  return answer.operation && !model::IsFinished(answer.operation->state);
}

bool IsFailed(const service::Answer& answer) {
  return answer.operation && answer.operation->state == model::OperationState::kFailed &&
         !IsCancelledByUser(answer);
}

void AddKeyHeaders(const service::Answer& answer, const Telling& telling,
                   http::HeaderList& headers) {
  if (answer.is_replay) headers.Set("Idempotent-Replayed", "true");
  if (answer.operation) {
    headers.Set("Location", OperationUrl(answer.operation->id));
    headers.Set("Idempotency-First-Seen", FormatRfc3339(answer.operation->accepted));
  }
  if (answer.expires) headers.Set("Idempotency-Expires", FormatRfc3339(*answer.expires));
  if (IsUnfinished(answer)) {
    headers.Set("Retry-After",
                fmt::format("{}", RetryAfter(*answer.operation, telling.now).count()));
  }
  if (telling.wait.count() > 0) {
    headers.Set("Preference-Applied", fmt::format("wait={}", telling.wait.count()));
  }
}

http::Response Failed(const service::Answer& answer, const Telling& telling) {
  http::Response response = Reply(FailureProblem(*answer.operation));
  const std::optional<std::string_view> retry_after = response.headers.Find("retry-after");
  const std::string kept(retry_after.value_or(""));
  AddKeyHeaders(answer, telling, response.headers);
  if (!kept.empty()) response.headers.Set("Retry-After", kept);
  return response;
}

// The VM stands in it twice, and is written once.
std::string CreateBody(const service::Answer& answer, const Telling& telling) {
  std::vector<std::string> vms;
  vms.reserve(answer.vms.size());
  std::size_t bytes = kHeadBytes;
  for (const model::Vm& vm : answer.vms) bytes += vms.emplace_back(TextOf(vm)).size();
  std::string body;
  body.reserve(vms.empty() ? bytes : bytes + vms.front().size());
  JsonWriter out(body);
  out.BeginObject();
  out.Member("result", answer.is_replay ? "existing" : "created");
  if (answer.operation) {
    out.Name("operation");
    out.Raw(TextOf(*answer.operation, telling.step_name));
  }
  if (!vms.empty()) {
    out.Name("vm");
    out.Raw(vms.front());
  }
  out.Name("vms");
  out.BeginArray();
  for (const std::string& vm : vms) out.Raw(vm);
  out.EndArray();
  out.EndObject();
  return body;
}

std::string ChangeBody(const service::Answer& answer, const Telling& telling) {
  std::string body;
  JsonWriter out(body);
  out.BeginObject();
  out.Name("operation");
  if (answer.operation) {
    out.Raw(TextOf(*answer.operation, telling.step_name));
  } else {
    out.Null();
  }
  if (!answer.vms.empty()) {
    out.Name("vm");
    out.Raw(TextOf(answer.vms.front()));
  }
  out.EndObject();
  return body;
}

}  // namespace

http::Response Reply(const model::Problem& problem) {
  const bool is_known = IsInTable(problem.code);
  const model::ProblemKind& kind = model::KindOf(is_known ? problem.code : kUnknownFailure);
  http::Problem document;
  document.status = kind.status;
  document.code = kind.code;
  document.title = kind.title;
  document.detail =
      is_known ? problem.detail : fmt::format("{} ({})", problem.detail, problem.code);
  document.retryable = kind.retryable;
  document.retry_same_key = problem.retry_same_key.value_or(kind.retry_same_key);
  if (problem.operation) document.operation = OperationUrl(*problem.operation);
  if (problem.retry_after) {
    document.retry_after = std::clamp(*problem.retry_after, seconds(1), limits::kRetryAfterMax);
  }
  document.extra = Extensions(problem);
  http::Response response = http::ToResponse(document);
  if (kind.code == "idempotency_key_required") {
    response.headers.Add("Link",
                         "<https://vmonce.dev/problems/idempotency_key_required>; "
                         "rel=\"describedby\"");
  }
  return response;
}

model::Problem FailureProblem(const model::Operation& operation) {
  const model::Failure failure = operation.failure.value_or(model::Failure{});
  model::Problem problem;
  problem.code = failure.code;
  problem.detail = failure.detail;
  problem.retry_same_key = failure.passing;
  problem.operation = operation.id;
  problem.first_seen = operation.accepted;
  if (operation.items.size() == 1) problem.vm = model::VmId{operation.items.front().subject};
  if (failure.passing) problem.retry_after = seconds(5);
  return problem;
}

http::Response ReplyCreate(const service::Answer& answer, const Telling& telling) {
  if (IsFailed(answer)) return Failed(answer, telling);
  const bool is_made = !answer.is_replay && answer.operation &&
                       answer.operation->state == model::OperationState::kSucceeded;
  const int status = IsUnfinished(answer) ? 202 : is_made ? 201 : 200;
  http::Response response = http::JsonResponse(status, CreateBody(answer, telling));
  AddKeyHeaders(answer, telling, response.headers);
  return response;
}

http::Response ReplyChange(const service::Answer& answer, const Telling& telling) {
  if (IsFailed(answer)) return Failed(answer, telling);
  http::Response response =
      http::JsonResponse(IsUnfinished(answer) ? 202 : 200, ChangeBody(answer, telling));
  AddKeyHeaders(answer, telling, response.headers);
  if (answer.vms.size() == 1) {
    response.headers.Set("ETag", EntityTag(answer.vms.front().version));
  }
  return response;
}

http::Response ReplyVm(const model::Vm& vm) {
  http::Response response = http::JsonResponse(200, TextOf(vm));
  response.headers.Set("ETag", EntityTag(vm.version));
  return response;
}

http::Response ReplyPage(const std::vector<std::string>& items, const std::string& next) {
  std::string body;
  JsonWriter out(body);
  out.BeginObject();
  out.Name("items");
  out.BeginArray();
  for (const std::string& item : items) out.Raw(item);
  out.EndArray();
  out.Name("next");
  if (next.empty()) {
    out.Null();
  } else {
    out.Value(next);
  }
  out.EndObject();
  return http::JsonResponse(200, std::move(body));
}

http::Response ReplyItems(json::array items) {
  return http::JsonResponse(200, json::serialize(json::object{{"items", std::move(items)}}));
}

http::Response ReplyDryRun(const service::DryRun& run, const StepName& step_name) {
  std::string body;
  JsonWriter out(body);
  out.BeginObject();
  out.Member("would", WordOf(run.would));
  if (run.problem) {
    // As it would be answered, so that one reader of problems reads both.
    out.Name("problem");
    out.Raw(Reply(*run.problem).body);
  }
  if (run.operation) {
    out.Name("operation");
    out.Raw(TextOf(*run.operation, step_name));
  }
  if (!run.vms.empty()) {
    out.Name("vms");
    out.BeginArray();
    for (const model::Vm& vm : run.vms) out.Raw(TextOf(vm));
    out.EndArray();
  }
  out.EndObject();
  return http::JsonResponse(200, std::move(body));
}

seconds RetryAfter(const model::Operation& operation, Time now) {
  const auto age = std::chrono::duration_cast<seconds>(now - operation.updated);
  return std::clamp(age / kPollDivisor, seconds(1), limits::kRetryAfterMax);
}

}  // namespace vmonce::rest
