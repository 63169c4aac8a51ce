// From an HTTP request to what the service is asked. A problem here is the whole answer: what does
// not parse never reaches the service.
#pragma once

#include <string>

#include "api/rest/parse_headers.h"
#include "base/seal.h"
#include "http/message.h"
#include "model/ids.h"
#include "service/tokens.h"
#include "service/vm_service.h"

namespace vmonce::rest {

struct ParsedCreate {
  service::CreateRequest request;
  bool is_dry_run = false;
};

// POST /v1/vms. A dry run needs no key. What is kept of the body has {"hmac": hex} in place of user
// data.
Parsed<ParsedCreate> ParseCreate(const http::Request& request, const Sealer& sealer);

// Whether the request says dry_run=true, before anything is parsed.
bool IsDryRun(const http::Request& request);

// DELETE /v1/vms/{id}, PATCH /v1/vms/{id} and POST /v1/vms/{id}/start|stop|reboot.
// `vm_not_found` for an id that is none.
Parsed<service::ChangeRequest> ParseChange(const http::Request& request,
                                           service::ChangeRequest::Kind kind);

// Everything of a change but what the members of its body mean; `route` has its parameters filled
// in.
Parsed<service::Asked> ParseAsked(const http::Request& request, std::string route);

// For a change with no members in its body, if it has one at all: `route` with its parameters
// filled in.
Parsed<service::Asked> ParseBare(const http::Request& request, std::string route);

// POST /v1/tokens.
// The body's one member, `key`, which is written as in the header; `invalid_request` otherwise.
struct ParsedKey {
  service::Caller caller;
  model::IdempotencyKey key;
};
Parsed<ParsedKey> ParseKeyRequest(const http::Request& request, std::string route);

Parsed<service::NewToken> ParseNewToken(const http::Request& request, Time now);

// The path parameter `id`.
Parsed<model::VmId> ParseVmId(const http::Request& request);
Parsed<model::OperationId> ParseOperationId(const http::Request& request);

}  // namespace vmonce::rest
