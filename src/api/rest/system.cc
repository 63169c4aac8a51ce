// What tells of the service itself.
#include "api/rest/contract.h"
#include "api/rest/gate.h"
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/parse_query.h"
#include "api/rest/reply.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;

http::Response StatusJson(std::string_view status) {
  return http::JsonResponse(200, json::serialize(json::object{{"status", status}}));
}

http::Response GetReadinessNow(const Face& face, const http::Request& request) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) return Reply(*problem);
  const auto ready = face.parts.queries.Ready();
  return ready ? StatusJson("ready") : Reply(ready.error());
}

http::Response GetCapabilitiesNow(const Face& face, const http::Request& request) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) return Reply(*problem);
  const service::Caller& caller = CallerOf(request);
  const auto usage = face.parts.queries.Usage(caller);
  if (!usage) return Reply(usage.error());
  return http::JsonResponse(200, json::serialize(JsonOf(face.parts.capabilities, caller, *usage)));
}

http::Response GetQuotaNow(const Face& face, const http::Request& request) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) return Reply(*problem);
  const service::Caller& caller = CallerOf(request);
  const auto held = face.parts.queries.Held(caller);
  if (!held) return Reply(held.error());
  json::object body{{"project", caller.project.value}};
  body["limit"] = JsonOf(face.parts.capabilities.quotas.Of(caller.project));
  body["used"] = JsonOf(*held);
  return http::JsonResponse(200, json::serialize(body));
}

}  // namespace

void GetCapabilities(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(GetCapabilitiesNow(*face, request));
}

void GetQuota(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(GetQuotaNow(*face, request));
}

void GetReadiness(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(GetReadinessNow(*face, request));
}

void GetContract(const FacePointer&, http::Request request, http::Responder respond) {
  const std::optional<model::Problem> problem = RefuseQuery(request);
  respond(problem ? Reply(*problem) : http::JsonResponse(200, std::string(ContractJson())));
}

void GetHealth(const FacePointer&, http::Request request, http::Responder respond) {
  const std::optional<model::Problem> problem = RefuseQuery(request);
  respond(problem ? Reply(*problem) : StatusJson("ok"));
}

void GetMetrics(const FacePointer& face, http::Request request, http::Responder respond) {
  const std::optional<model::Problem> problem = RefuseQuery(request);
  respond(problem ? Reply(*problem)
                  : http::NewResponse(200, "text/plain; version=0.0.4; charset=utf-8",
                                      face->parts.metrics()));
}

}  // namespace vmonce::rest
