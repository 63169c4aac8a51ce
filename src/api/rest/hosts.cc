// Hosts, and the sweep on demand.
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/parse_query.h"
#include "api/rest/reply.h"

namespace vmonce::rest {
namespace {

// Says how it went for every host; one sweep at a time.
http::Response ReconcileNow(Face& face) {
  if (face.is_sweeping.exchange(true)) {
    model::Problem problem;
    problem.code = "overloaded";
    problem.detail = "A sweep that somebody asked for is under way; ask again when it is over.";
    problem.retry_after = std::chrono::seconds(1);
    return Reply(problem);
  }
  const std::vector<workflows::ReconcileReport> reports = face.parts.reconciler.SweepAll();
  face.is_sweeping = false;
  boost::json::array hosts;
  for (const workflows::ReconcileReport& report : reports) hosts.push_back(JsonOf(report));
  return http::JsonResponse(
      200, boost::json::serialize(boost::json::object{{"hosts", std::move(hosts)}}));
}

// A key is checked and not kept: declaring a thing twice is declaring it once.
http::Response Declare(Face& face, const http::Request& request, std::string_view verb,
                       model::HostState state) {
  const model::HostId id{std::string(request.PathParam("id"))};
  const Parsed<service::Asked> asked =
      ParseBare(request, "/v1/hosts/" + id.value + "/" + std::string(verb));
  if (!asked) return Reply(asked.error());
  const auto host = face.parts.hosts.Declare(id, state);
  if (!host) return Reply(host.error());
  return http::JsonResponse(200, boost::json::serialize(JsonOf(*host)));
}

}  // namespace

void DrainHost(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(Declare(*face, request, "drain", model::HostState::kDraining));
}

void ActivateHost(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(Declare(*face, request, "activate", model::HostState::kActive));
}

void DeclareHostDead(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(Declare(*face, request, "dead", model::HostState::kDead));
}

void ListHosts(const FacePointer& face, http::Request request, http::Responder respond) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) {
    respond(Reply(*problem));
    return;
  }
  const auto hosts = face->parts.queries.Hosts();
  if (!hosts) {
    respond(Reply(hosts.error()));
    return;
  }
  boost::json::array items;
  for (const service::HostView& host : *hosts) items.push_back(JsonOf(host));
  respond(ReplyItems(std::move(items)));
}

// A key is checked and not kept: a sweep may run any number of times.
void Reconcile(const FacePointer& face, http::Request request, http::Responder respond) {
  const Parsed<service::Asked> asked = ParseBare(request, "/v1/reconcile");
  respond(asked ? ReconcileNow(*face) : Reply(asked.error()));
}

}  // namespace vmonce::rest
