// Tokens, for their operator.
#include "api/rest/gate.h"
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/parse_query.h"
#include "api/rest/reply.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;

http::Response ListTokensNow(const Face& face, const http::Request& request) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) return Reply(*problem);
  const auto tokens = face.parts.tokens.List();
  if (!tokens) return Reply(tokens.error());
  const Time now = face.parts.clock.Now();
  json::array items;
  for (const model::Token& token : *tokens) items.push_back(JsonOf(token, now));
  return ReplyItems(std::move(items));
}

http::Response CreateTokenNow(const Face& face, const http::Request& request) {
  const Time now = face.parts.clock.Now();
  const Parsed<service::NewToken> wanted = ParseNewToken(request, now);
  if (!wanted) return Reply(wanted.error());
  const auto created = face.parts.tokens.Create(*wanted);
  if (!created) return Reply(created.error());
  json::object body{{"token", JsonOf(created->token, now)}};
  if (!created->is_replay) body["secret"] = created->secret;
  http::Response response =
      http::JsonResponse(created->is_replay ? 200 : 201, json::serialize(body));
  if (created->is_replay) response.headers.Set("Idempotent-Replayed", "true");
  return response;
}

http::Response RevokeTokenNow(const Face& face, const http::Request& request) {
  const std::optional<Uuid> id = ParseUuid(request.PathParam("id"));
  if (!id) {
    model::Problem problem;
    problem.code = "token_not_found";
    problem.detail = "Tokens are addressed by id; this is no id.";
    return Reply(problem);
  }
  const Parsed<service::Asked> asked = ParseBare(request, "/v1/tokens/" + ToString(*id));
  if (!asked) return Reply(asked.error());
  const auto token = face.parts.tokens.Revoke(CallerOf(request), model::TokenId{*id});
  if (!token) return Reply(token.error());
  return http::JsonResponse(200, json::serialize(JsonOf(*token, face.parts.clock.Now())));
}

}  // namespace

void ListTokens(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(ListTokensNow(*face, request));
}

void CreateToken(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(CreateTokenNow(*face, request));
}

void RevokeToken(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(RevokeTokenNow(*face, request));
}

}  // namespace vmonce::rest
