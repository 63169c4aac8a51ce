#include "api/rest/routes.h"

namespace vmonce::rest {
namespace {

using http::HandlerMode;
using Codes = std::vector<std::string_view>;

constexpr HandlerMode kInline = HandlerMode::kInline;
constexpr HandlerMode kBlocking = HandlerMode::kBlocking;

Codes With(Codes codes, const Codes& more) {
  codes.insert(codes.end(), more.begin(), more.end());
  return codes;
}

// Of everything that parses a change.
Codes Change() {
  return {"invalid_json", "invalid_idempotency_key", "unsupported_media_type",
          "origin_not_allowed"};
}

// Of everything that the gate of protocol section 5 lets through or not.
Codes Gate() {
  return {"idempotency_key_reused", "idempotency_key_expired", "backlog_full", "ledger_unavailable",
          "ledger_behind"};
}

// How an operation that was waited for may have failed.
Codes Failures() {
  return {"hypervisor_refused", "hypervisor_unavailable", "image_unavailable", "conflict"};
}

Codes OfCreate() {
  return With(With(With(Change(), Gate()), Failures()),
              {"idempotency_key_required", "image_not_found", "name_taken", "quota_exceeded",
               "no_capacity"});
}

Codes OfVm() {
  return With(With(Change(), Gate()), {"vm_not_found", "precondition_failed", "wrong_state"});
}

Codes OfUpdate() { return With(With(OfVm(), Failures()), {"name_taken", "vm_missing"}); }
Codes OfPower() { return With(OfVm(), Failures()); }
Codes OfHost() { return With(Change(), {"host_not_found", "ledger_unavailable"}); }

Codes OfImages(const Codes& more) {
  return With(With(Change(), {"image_invalid", "image_unavailable", "ledger_unavailable"}), more);
}

}  // namespace

std::vector<RouteEntry> AllRoutes() {
  const Codes reads = {"ledger_unavailable"};
  const Codes vm_reads = {"ledger_unavailable", "vm_not_found"};
  const Codes operation_reads = {"ledger_unavailable", "operation_not_found"};
  return {
      {"POST", "/v1/vms", kInline, &CreateVm, {200, 201, 202}, OfCreate()},
      {"GET", "/v1/vms", kBlocking, &ListVms, {200}, reads},
      {"GET", "/v1/vms/{id}", kBlocking, &GetVm, {200, 304}, vm_reads},
      {"PATCH", "/v1/vms/{id}", kInline, &UpdateVm, {200, 202}, OfUpdate()},
      {"DELETE", "/v1/vms/{id}", kInline, &DeleteVm, {200, 202}, OfVm()},
      {"POST", "/v1/vms/{id}/start", kInline, &StartVm, {200, 202}, OfPower()},
      {"POST", "/v1/vms/{id}/stop", kInline, &StopVm, {200, 202}, OfPower()},
      {"POST", "/v1/vms/{id}/reboot", kInline, &RebootVm, {200, 202}, OfPower()},
      {"GET",
       "/v1/vms/{id}/console",
       kBlocking,
       &GetConsole,
       {200},
       With(vm_reads, {"console_not_ready", "hypervisor_unavailable"})},
      {"GET", "/v1/operations", kBlocking, &ListOperations, {200}, reads},
      {"GET", "/v1/operations/{id}", kBlocking, &GetOperation, {200}, operation_reads},
      {"GET", "/v1/operations/{id}/timeline", kBlocking, &GetTimeline, {200}, operation_reads},
      {"POST",
       "/v1/operations/{id}/cancel",
       kInline,
       &CancelOperation,
       {200, 202},
       With(Change(),
            {"operation_not_found", "operation_finished", "wrong_state", "ledger_unavailable"})},
      {"GET", "/v1/images", kBlocking, &ListImages, {200}, reads},
      {"POST", "/v1/images", kBlocking, &AddImage, {200, 201}, OfImages({"image_exists"})},
      {"DELETE",
       "/v1/images/{name}",
       kBlocking,
       &RemoveImage,
       {204},
       With(Change(), {"image_not_found", "image_in_use", "ledger_unavailable"})},
      {"PUT",
       "/v1/image-files/{sha256}",
       kBlocking,
       &PutImageFile,
       {200},
       {"image_invalid", "image_unavailable", "unsupported_media_type", "origin_not_allowed"}},
      {"DELETE", "/v1/image-files/{sha256}", kBlocking, &DeleteImageFile, {204}, Change()},
      {"GET", "/v1/hosts", kBlocking, &ListHosts, {200}, reads},
      {"POST", "/v1/hosts/{id}/drain", kBlocking, &DrainHost, {200}, OfHost()},
      {"POST", "/v1/hosts/{id}/activate", kBlocking, &ActivateHost, {200}, OfHost()},
      {"POST", "/v1/hosts/{id}/dead", kBlocking, &DeclareHostDead, {200}, OfHost()},
      {"POST", "/v1/reconcile", kBlocking, &Reconcile, {200}, Change()},
      {"GET", "/v1/capabilities", kBlocking, &GetCapabilities, {200}, reads},
      {"GET", "/openapi.json", kInline, &GetContract, {200}, {}},
      {"GET", "/healthz", kInline, &GetHealth, {200}, {}},
      {"GET",
       "/readyz",
       kBlocking,
       &GetReadiness,
       {200},
       {"ledger_unavailable", "hypervisor_unavailable"}},
      {"GET", "/metrics", kBlocking, &GetMetrics, {200}, {}},
  };
}

}  // namespace vmonce::rest
