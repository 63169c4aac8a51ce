#include "model/problem.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace vmonce::model {
namespace {

// Written out at every row, so that the table reads as one.
constexpr bool kRetry = true;
constexpr bool kNoRetry = false;
constexpr bool kSameKey = true;
constexpr bool kNotThisKey = false;

// By status. docs/problems.md says in the same order what each one means to a caller.
constexpr ProblemKind kKinds[] = {
    {"bad_request", 400, "The request is not well-formed HTTP", kNoRetry, kSameKey},
    {"tls_required", 400, "This port speaks TLS", kNoRetry, kSameKey},
    {"invalid_json", 400, "The body is not acceptable JSON", kNoRetry, kSameKey},
    {"invalid_request", 400, "The request does not fit the schema", kNoRetry, kSameKey},
    {"idempotency_key_required", 400, "An Idempotency-Key is required", kNoRetry, kNotThisKey},
    {"invalid_idempotency_key", 400, "The Idempotency-Key is invalid", kNoRetry, kNotThisKey},
    {"image_invalid", 400, "The file is no usable image", kNoRetry, kSameKey},
    {"hypervisor_refused", 400, "The hypervisor refuses this machine", kNoRetry, kNotThisKey},
    {"unauthenticated", 401, "The caller is not known", kNoRetry, kSameKey},
    {"forbidden", 403, "The caller may not do this", kNoRetry, kSameKey},
    {"origin_not_allowed", 403, "Pages of this origin may not do this", kNoRetry, kSameKey},
    {"quota_exceeded", 403, "The project's quota does not allow this", kNoRetry, kSameKey},
    {"route_not_found", 404, "No resource is served at this path", kNoRetry, kSameKey},
    {"not_found", 404, "There is no such thing", kNoRetry, kSameKey},
    {"vm_not_found", 404, "There is no such VM", kNoRetry, kSameKey},
    {"operation_not_found", 404, "There is no such operation", kNoRetry, kSameKey},
    {"token_not_found", 404, "There is no such token", kNoRetry, kSameKey},
    {"image_not_found", 404, "There is no such image", kNoRetry, kSameKey},
    {"host_not_found", 404, "There is no such host", kNoRetry, kSameKey},
    {"console_not_ready", 404, "The VM has no console yet", kRetry, kSameKey},
    {"method_not_allowed", 405, "This path does not serve the method", kNoRetry, kSameKey},
    {"request_timeout", 408, "The request did not arrive in time", kRetry, kSameKey},
    {"conflict", 409, "Something that is not ours stands in the way", kNoRetry, kNotThisKey},
    {"host_port_taken", 409, "The port is in use on the host", kNoRetry, kSameKey},
    {"name_taken", 409, "Another VM has this name", kNoRetry, kSameKey},
    {"image_changed", 409, "The image's file has changed", kNoRetry, kSameKey},
    {"image_exists", 409, "Another image has this name", kNoRetry, kSameKey},
    {"image_in_use", 409, "Machines stand on this image", kNoRetry, kSameKey},
    {"network_not_offered", 409, "No host offers this network", kNoRetry, kSameKey},
    {"operation_finished", 409, "The operation has ended", kNoRetry, kSameKey},
    {"vm_missing", 409, "The machine is missing on its host", kNoRetry, kNotThisKey},
    {"wrong_state", 409, "The VM's state does not allow this", kNoRetry, kSameKey},
    {"idempotency_key_expired", 410, "The key was used long ago", kNoRetry, kNotThisKey},
    {"first_sent_too_far", 412, "The request was not first sent now", kNoRetry, kSameKey},
    {"precondition_failed", 412, "The VM has changed since", kNoRetry, kSameKey},
    {"body_too_large", 413, "The body is too large", kNoRetry, kSameKey},
    {"unsupported_media_type", 415, "The body must be application/json", kNoRetry, kSameKey},
    {"expectation_failed", 417, "The expectation is not supported", kNoRetry, kSameKey},
    {"host_not_allowed", 421, "This host name is not served", kNoRetry, kSameKey},
    {"idempotency_key_reused", 422, "The key was used for another request", kNoRetry, kNotThisKey},
    {"rate_limited", 429, "Too many requests", kRetry, kSameKey},
    {"too_many_keys", 429, "The project remembers too many keys", kRetry, kSameKey},
    {"header_too_large", 431, "The header is too large", kNoRetry, kSameKey},
    {"internal", 500, "The service failed to answer", kRetry, kSameKey},
    {"transfer_coding_unsupported", 501, "The transfer coding is not supported", kNoRetry,
     kSameKey},
    {"backlog_full", 503, "Too much accepted work is waiting", kRetry, kSameKey},
    {"hypervisor_unavailable", 503, "The hypervisor does not answer now", kRetry, kSameKey},
    {"image_unavailable", 503, "A file of the image cannot be had now", kRetry, kSameKey},
    {"ledger_behind", 503, "The ledger is older than the machines", kRetry, kSameKey},
    {"ledger_unavailable", 503, "The ledger does not answer now", kRetry, kSameKey},
    {"no_capacity", 503, "No host has room now", kRetry, kSameKey},
    {"overloaded", 503, "Too many requests wait", kRetry, kSameKey},
    {"starting", 503, "The service is starting", kRetry, kSameKey},
    {"http_version_unsupported", 505, "The HTTP version is not supported", kNoRetry, kSameKey},
};

}  // namespace

const ProblemKind& KindOf(std::string_view code) {
  const auto* kind = std::ranges::find(kKinds, code, &ProblemKind::code);
  CHECK_MSG(kind != std::end(kKinds), code);
  return *kind;
}

std::vector<ProblemKind> AllProblemKinds() { return {std::begin(kKinds), std::end(kKinds)}; }

}  // namespace vmonce::model
