// What tells of operations.
#include "api/rest/gate.h"
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/parse_query.h"
#include "api/rest/reply.h"

namespace vmonce::rest {
namespace {

constexpr std::string_view kStates = "accepted, running, verifying, succeeded, failed or cancelled";
constexpr std::string_view kKinds = "create, delete, start, stop, reboot or update";

http::Response ListOperationsNow(const Face& face, const http::Request& request) {
  QueryReader query(request);
  ports::OperationFilter filter;
  filter.key_hash = query.KeyHash();
  filter.state = query.Word("state", &model::ParseOperationState, kStates);
  filter.kind = query.Word("kind", &model::ParseOperationKind, kKinds);
  if (const std::optional<Uuid> vm = query.Id("vm")) filter.vm = model::VmId{*vm};
  const ports::Page page = query.Page();
  if (const std::optional<model::Problem> problem = query.Finish()) return Reply(*problem);
  const auto rows = face.parts.queries.ListOperations(CallerOf(request), filter, page);
  if (!rows) return Reply(rows.error());
  std::vector<std::string> items;
  for (const model::Operation& operation : rows->rows) {
    items.push_back(TextOf(operation, face.parts.step_name));
  }
  return ReplyPage(items, rows->next);
}

Parsed<model::Operation> Find(const Face& face, const http::Request& request) {
  if (std::optional<model::Problem> problem = RefuseQuery(request)) {
    return std::unexpected(std::move(*problem));
  }
  Parsed<model::OperationId> id = ParseOperationId(request);
  if (!id) return std::unexpected(std::move(id.error()));
  return face.parts.queries.GetOperation(CallerOf(request), *id);
}

http::Response GetTimelineNow(const Face& face, const http::Request& request) {
  const Parsed<model::Operation> operation = Find(face, request);
  if (!operation) return Reply(operation.error());
  const auto entries = face.parts.queries.Timeline(CallerOf(request), operation->id);
  return entries ? ReplyItems(TimelineOf(*operation, *entries)) : Reply(entries.error());
}

}  // namespace

void ListOperations(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(ListOperationsNow(*face, request));
}

void GetOperation(const FacePointer& face, http::Request request, http::Responder respond) {
  const Parsed<model::Operation> operation = Find(*face, request);
  if (!operation) {
    respond(Reply(operation.error()));
    return;
  }
  http::Response response = http::JsonResponse(200, TextOf(*operation, face->parts.step_name));
  if (!model::IsFinished(operation->state)) {
    const std::chrono::seconds wait = RetryAfter(*operation, face->parts.clock.Now());
    response.headers.Set("Retry-After", std::to_string(wait.count()));
  }
  respond(std::move(response));
}

void GetTimeline(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(GetTimelineNow(*face, request));
}

}  // namespace vmonce::rest
