#include "api/rest/parse_body.h"

#include <utility>

#include "api/rest/fields.h"
#include "api/rest/gate.h"
#include "api/rest/parse_query.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/rfc3339.h"
#include "model/auth_limits.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
namespace limits = model::limits;
using service::ChangeRequest;

constexpr std::string_view kVmsRoute = "/v1/vms";

std::unexpected<model::Problem> Refuse(std::string code, std::string detail) {
  model::Problem problem;
  problem.code = std::move(code);
  problem.detail = std::move(detail);
  return std::unexpected(std::move(problem));
}

std::unexpected<model::Problem> NotAnObject() {
  return std::unexpected(InvalidRequest({{"", "the body must be a JSON object"}}));
}

// Null for an empty body.
Parsed<json::value> ParseJsonBody(const http::Request& request) {
  if (request.body.empty()) return json::value();
  Result<json::value> body = ParseStrictJson(request.body);
  if (!body) return Refuse("invalid_json", "The body is " + body.error().detail);
  if (!body->is_object()) return NotAnObject();
  return std::move(*body);
}

// A reader of the body's members; `empty` stands in for a body that is not there.
const json::object& MembersOf(const json::value& body) {
  static const json::object kEmpty;
  return body.is_object() ? body.get_object() : kEmpty;
}

std::optional<model::Problem> ProblemOf(std::vector<FieldProblem> found) {
  if (found.empty()) return std::nullopt;
  std::vector<model::FieldProblem> fields;
  for (FieldProblem& field : found) {
    fields.push_back({std::move(field.pointer), std::move(field.detail)});
  }
  return InvalidRequest(std::move(fields));
}

void ReadUpdate(JsonReader& reader, ChangeRequest& change) {
  change.name = ReadName(reader, /*count=*/1);
  change.labels = ReadLabels(reader);
  change.desired = ReadDesired(reader);
  change.restart = ReadRestart(reader);
  const auto members = {"name", "labels", "desired", "restart"};
  if (std::ranges::none_of(members, [&](const char* name) { return reader.Has(name); })) {
    reader.AddProblem("name",
                      "or labels, desired or restart is required: there is nothing to change");
  }
}

void ReadNewToken(JsonReader& reader, Time now, service::NewToken& token) {
  reader.Require({"project", "role"});
  token.project.value = reader.String("project", {1, limits::kNameBytes}).value_or("x");
  if (!model::IsProjectName(token.project.value)) {
    reader.AddProblem("project",
                      "must be letters, digits, '-', '_' and '.', and not begin with '.'");
  }
  const auto role = reader.OneOf("role", {"metrics", "viewer", "member", "admin"});
  if (role) token.role = model::ParseRole(*role).value_or(model::Role::kViewer);
  token.name = reader.String("name", {0, limits::kTokenNameBytes}).value_or("");
  const auto expires = reader.String("expires_at", {1, limits::kNameBytes});
  if (!expires) return;
  token.expires = ParseRfc3339(*expires);
  if (!token.expires || *token.expires <= now) {
    reader.AddProblem("expires_at", "must be a time to come, such as 2030-01-31T00:00:00Z");
  }
}

std::string_view SuffixOf(ChangeRequest::Kind kind) {
  switch (kind) {
    case ChangeRequest::Kind::kDelete:
    case ChangeRequest::Kind::kUpdate: return "";
    case ChangeRequest::Kind::kStart: return "/start";
    case ChangeRequest::Kind::kStop: return "/stop";
    case ChangeRequest::Kind::kReboot: return "/reboot";
  }
  return "";
}

}  // namespace

bool IsDryRun(const http::Request& request) {
  const std::string* value = request.QueryParam("dry_run");
  return value != nullptr && *value == "true";
}

Parsed<service::Asked> ParseAsked(const http::Request& request, std::string route) {
  if (Parsed<void> sender = CheckSender(request); !sender) {
    return std::unexpected(std::move(sender.error()));
  }
  Parsed<std::optional<model::IdempotencyKey>> key = ParseKeyHeader(request.headers);
  if (!key) return std::unexpected(std::move(key.error()));
  Parsed<json::value> body = ParseJsonBody(request);
  if (!body) return std::unexpected(std::move(body.error()));

  service::Asked asked;
  asked.caller = CallerOf(request);
  asked.key = std::move(*key);
  asked.request.method = request.method;
  asked.request.route = std::move(route);
  asked.request.body = std::move(*body);
  asked.redacted = asked.request;
  asked.face = "rest";
  asked.wait = ParsePrefer(request.headers);
  return asked;
}

Parsed<ParsedCreate> ParseCreate(const http::Request& request, const Sealer& sealer) {
  QueryReader query(request);
  ParsedCreate parsed;
  parsed.is_dry_run = query.Bool("dry_run").value_or(false);
  if (std::optional<model::Problem> problem = query.Finish()) {
    return std::unexpected(std::move(*problem));
  }
  // Without a body there is no media type to be wrong, and nothing that could be accepted.
  if (request.body.empty() && request.headers.Count("content-type") == 0) {
    return Refuse("unsupported_media_type",
                  "The body is missing: a create needs a JSON object, with Content-Type: "
                  "application/json");
  }
  Parsed<service::Asked> asked = ParseAsked(request, std::string(kVmsRoute));
  if (!asked) return std::unexpected(std::move(asked.error()));
  if (!asked->key && !parsed.is_dry_run) {
    return Refuse("idempotency_key_required",
                  "Creating machines needs the header Idempotency-Key: make a random one, keep it, "
                  "and send it again with every retry. Nothing was done.");
  }
  const Parsed<std::optional<Time>> first_sent = ParseFirstSent(request.headers);
  if (!first_sent) return std::unexpected(first_sent.error());
  parsed.request.first_sent = *first_sent;
  if (!asked->request.body.is_object()) return NotAnObject();
  JsonReader reader(asked->request.body.get_object(), "");
  parsed.request.intent = ReadIntent(reader);
  const UserData user_data = ReadUserData(reader);
  if (std::optional<model::Problem> problem = ProblemOf(reader.Finish())) {
    return std::unexpected(std::move(*problem));
  }
  if (user_data.member != nullptr) {
    const Digest mac = sealer.Mac(user_data.bytes);
    asked->redacted.body.get_object()[user_data.member] = json::object{{"hmac", ToHex(mac)}};
    if (!user_data.bytes.empty()) parsed.request.intent.user_data_mac = mac;
  }
  parsed.request.user_data = user_data.bytes;
  parsed.request.asked = std::move(*asked);
  return parsed;
}

Parsed<ChangeRequest> ParseChange(const http::Request& request, ChangeRequest::Kind kind) {
  if (std::optional<model::Problem> problem = RefuseQuery(request)) {
    return std::unexpected(std::move(*problem));
  }
  Parsed<model::VmId> vm = ParseVmId(request);
  if (!vm) return std::unexpected(std::move(vm.error()));
  ChangeRequest change;
  change.kind = kind;
  change.vm = *vm;
  // In one spelling, whatever the case of the id was.
  Parsed<service::Asked> asked = ParseAsked(
      request, std::string(kVmsRoute) + "/" + ToString(*vm) + std::string(SuffixOf(kind)));
  if (!asked) return std::unexpected(std::move(asked.error()));
  Parsed<std::optional<std::int64_t>> if_version = ParseIfMatch(request.headers);
  if (!if_version) return std::unexpected(std::move(if_version.error()));
  change.if_version = *if_version;

  JsonReader reader(MembersOf(asked->request.body), "");
  if (kind == ChangeRequest::Kind::kUpdate) ReadUpdate(reader, change);
  if (kind == ChangeRequest::Kind::kStop) change.force = reader.Bool("force").value_or(false);
  if (std::optional<model::Problem> problem = ProblemOf(reader.Finish())) {
    return std::unexpected(std::move(*problem));
  }
  change.asked = std::move(*asked);
  return change;
}

Parsed<service::Asked> ParseBare(const http::Request& request, std::string route) {
  if (std::optional<model::Problem> problem = RefuseQuery(request)) {
    return std::unexpected(std::move(*problem));
  }
  Parsed<service::Asked> asked = ParseAsked(request, std::move(route));
  if (!asked) return asked;
  JsonReader reader(MembersOf(asked->request.body), "");
  if (std::optional<model::Problem> problem = ProblemOf(reader.Finish())) {
    return std::unexpected(std::move(*problem));
  }
  return asked;
}

Parsed<service::NewToken> ParseNewToken(const http::Request& request, Time now) {
  if (std::optional<model::Problem> problem = RefuseQuery(request)) {
    return std::unexpected(std::move(*problem));
  }
  Parsed<service::Asked> asked = ParseAsked(request, "/v1/tokens");
  if (!asked) return std::unexpected(std::move(asked.error()));
  service::NewToken token;
  token.caller = asked->caller;
  token.key = std::move(asked->key);
  JsonReader reader(MembersOf(asked->request.body), "");
  ReadNewToken(reader, now, token);
  if (std::optional<model::Problem> problem = ProblemOf(reader.Finish())) {
    return std::unexpected(std::move(*problem));
  }
  return token;
}

Parsed<model::VmId> ParseVmId(const http::Request& request) {
  const std::optional<Uuid> id = ParseUuid(request.PathParam("id"));
  if (!id) {
    return Refuse("vm_not_found",
                  "VMs are addressed by id, and this is no id. GET /v1/vms?name=… finds by name.");
  }
  return model::VmId{*id};
}

Parsed<model::OperationId> ParseOperationId(const http::Request& request) {
  const std::optional<Uuid> id = ParseUuid(request.PathParam("id"));
  if (!id) return Refuse("operation_not_found", "Operations are addressed by id; this is no id.");
  return model::OperationId{*id};
}

}  // namespace vmonce::rest
