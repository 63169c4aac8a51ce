// What tells of VMs and changes nothing.
#include <fmt/format.h>

#include "api/rest/gate.h"
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/parse_query.h"
#include "api/rest/reply.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace limits = model::limits;

constexpr std::string_view kStates =
    "pending, creating, ready, failed, missing, deleting or deleted";

// Offsets that a double in a client still holds exactly.
constexpr std::int64_t kOffsetMax = std::int64_t{1} << 53;

ports::VmFilter ReadFilter(QueryReader& query) {
  ports::VmFilter filter;
  filter.name = query.Text("name");
  filter.state = query.Word("state", &model::ParseVmState, kStates);
  if (const std::optional<std::string> label = query.Text("label")) {
    const std::size_t equals = label->find('=');
    if (equals == 0 || equals == std::string::npos) {
      query.AddProblem("label", "must be NAME=VALUE");
    } else {
      filter.label.emplace(label->substr(0, equals), label->substr(equals + 1));
    }
  }
  filter.key_hash = query.KeyHash();
  filter.with_deleted = query.Bool("deleted").value_or(false);
  return filter;
}

http::Response ListVmsNow(const Face& face, const http::Request& request) {
  QueryReader query(request);
  const ports::VmFilter filter = ReadFilter(query);
  const ports::Page page = query.Page();
  if (const std::optional<model::Problem> problem = query.Finish()) return Reply(*problem);
  const auto rows = face.parts.queries.ListVms(CallerOf(request), filter, page);
  if (!rows) return Reply(rows.error());
  std::vector<std::string> items;
  for (const model::Vm& vm : rows->rows) items.push_back(TextOf(vm));
  return ReplyPage(items, rows->next);
}

http::Response GetVmNow(const Face& face, const http::Request& request) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) return Reply(*problem);
  const Parsed<model::VmId> id = ParseVmId(request);
  if (!id) return Reply(id.error());
  const auto vm = face.parts.queries.GetVm(CallerOf(request), *id);
  if (!vm) return Reply(vm.error());
  const Parsed<bool> is_known = IsKnownToClient(request.headers, vm->version);
  if (!is_known) return Reply(is_known.error());
  if (!*is_known) return ReplyVm(*vm);
  http::Response unchanged;
  unchanged.status = 304;
  unchanged.headers.Set("ETag", EntityTag(vm->version));
  return unchanged;
}

http::Response GetConsoleNow(const Face& face, const http::Request& request) {
  constexpr auto kMost = static_cast<std::int64_t>(limits::kConsoleBytes);
  QueryReader query(request);
  const std::int64_t offset = query.Int("offset", {-kOffsetMax, kOffsetMax}).value_or(0);
  const std::int64_t most = query.Int("limit", {1, kMost}).value_or(kMost);
  if (const std::optional<model::Problem> problem = query.Finish()) return Reply(*problem);
  const Parsed<model::VmId> id = ParseVmId(request);
  if (!id) return Reply(id.error());
  auto chunk =
      face.parts.queries.Console(CallerOf(request), *id, offset, static_cast<std::size_t>(most));
  if (!chunk) return Reply(chunk.error());
  http::Response response =
      http::NewResponse(200, "text/plain; charset=utf-8", std::move(chunk->data));
  response.headers.Set("Vmonce-Console-Next", fmt::format("{}", chunk->next_offset));
  return response;
}

}  // namespace

void ListVms(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(ListVmsNow(*face, request));
}

void GetVm(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(GetVmNow(*face, request));
}

void GetConsole(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(GetConsoleNow(*face, request));
}

}  // namespace vmonce::rest
