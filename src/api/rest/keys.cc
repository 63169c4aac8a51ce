// Keys, for their operator.
#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/reply.h"

namespace vmonce::rest {

void ReleaseKey(const FacePointer& face, http::Request request, http::Responder respond) {
  const Parsed<ParsedKey> parsed = ParseKeyRequest(request, "/v1/keys/release");
  if (!parsed) {
    respond(Reply(parsed.error()));
    return;
  }
  const auto released = face->parts.keys.ReleaseKey(parsed->caller, parsed->key);
  if (!released) {
    respond(Reply(released.error()));
    return;
  }
  boost::json::array vms;
  for (const model::VmId& vm : released->vms) vms.emplace_back(ToString(vm));
  respond(http::JsonResponse(200, boost::json::serialize(boost::json::object{
                                      {"was_known", released->was_known}, {"vms", vms}})));
}

}  // namespace vmonce::rest
