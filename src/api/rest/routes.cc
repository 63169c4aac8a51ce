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
  return {"idempotency_key_reused", "idempotency_key_expired", "backlog_full",
          "too_many_keys",          "ledger_unavailable",      "ledger_behind"};
}

// How an operation that was waited for may have failed.
Codes Failures() {
  return {"hypervisor_refused", "hypervisor_unavailable", "image_unavailable", "conflict"};
}

Codes OfCreate() {
  return With(With(With(Change(), Gate()), Failures()),
              {"idempotency_key_required", "first_sent_too_far", "image_not_found", "image_changed",
               "name_taken", "quota_exceeded", "no_capacity"});
}

Codes OfVm() {
  return With(With(Change(), Gate()), {"vm_not_found", "precondition_failed", "wrong_state"});
}

Codes OfUpdate() { return With(With(OfVm(), Failures()), {"name_taken", "vm_missing"}); }
Codes OfTokenCreate() {
  return With(Change(), {"idempotency_key_reused", "quota_exceeded", "ledger_unavailable"});
}

Codes OfPower() { return With(OfVm(), Failures()); }
Codes OfHost() { return With(Change(), {"host_not_found", "ledger_unavailable"}); }

Codes OfImages(const Codes& more) {
  return With(With(Change(), {"image_invalid", "image_unavailable", "ledger_unavailable"}), more);
}

std::vector<RouteEntry> VmRoutes() {
  const Codes reads = {"ledger_unavailable"};
  const Codes vm_reads = {"ledger_unavailable", "vm_not_found"};
  return {
      {"POST", "/v1/vms", Access::kMember, kInline, &CreateVm, {200, 201, 202}, OfCreate()},
      {"GET", "/v1/vms", Access::kViewer, kBlocking, &ListVms, {200}, reads},
      {"GET", "/v1/vms/{id}", Access::kViewer, kBlocking, &GetVm, {200, 304}, vm_reads},
      {"PATCH", "/v1/vms/{id}", Access::kMember, kInline, &UpdateVm, {200, 202}, OfUpdate()},
      {"DELETE", "/v1/vms/{id}", Access::kMember, kInline, &DeleteVm, {200, 202}, OfVm()},
      {"POST", "/v1/vms/{id}/start", Access::kMember, kInline, &StartVm, {200, 202}, OfPower()},
      {"POST", "/v1/vms/{id}/stop", Access::kMember, kInline, &StopVm, {200, 202}, OfPower()},
      {"POST", "/v1/vms/{id}/reboot", Access::kMember, kInline, &RebootVm, {200, 202}, OfPower()},
      {"GET",
       "/v1/vms/{id}/console",
       Access::kViewer,
       kBlocking,
       &GetConsole,
       {200},
       With(vm_reads, {"console_not_ready", "hypervisor_unavailable"})},
  };
}

std::vector<RouteEntry> OperationRoutes() {
  const Codes reads = {"ledger_unavailable"};
  const Codes operation_reads = {"ledger_unavailable", "operation_not_found"};
  return {
      {"GET", "/v1/operations", Access::kViewer, kBlocking, &ListOperations, {200}, reads},
      {"GET",
       "/v1/operations/{id}",
       Access::kViewer,
       kBlocking,
       &GetOperation,
       {200},
       operation_reads},
      {"GET",
       "/v1/operations/{id}/timeline",
       Access::kViewer,
       kBlocking,
       &GetTimeline,
       {200},
       operation_reads},
      {"POST",
       "/v1/operations/{id}/cancel",
       Access::kMember,
       kInline,
       &CancelOperation,
       {200, 202},
       With(Change(),
            {"operation_not_found", "operation_finished", "wrong_state", "ledger_unavailable"})},
  };
}

std::vector<RouteEntry> OperatorRoutes() {
  const Codes reads = {"ledger_unavailable"};
  return {
      {"GET", "/v1/images", Access::kViewer, kBlocking, &ListImages, {200}, reads},
      {"POST",
       "/v1/images",
       Access::kAdmin,
       kBlocking,
       &AddImage,
       {200, 201},
       OfImages({"image_exists"})},
      {"DELETE",
       "/v1/images/{name}",
       Access::kAdmin,
       kBlocking,
       &RemoveImage,
       {204},
       With(Change(), {"image_not_found", "image_in_use", "ledger_unavailable"})},
      {"PUT",
       "/v1/image-files/{sha256}",
       Access::kAdmin,
       kBlocking,
       &PutImageFile,
       {200},
       {"image_invalid", "image_unavailable", "unsupported_media_type", "origin_not_allowed"}},
      {"DELETE",
       "/v1/image-files/{sha256}",
       Access::kAdmin,
       kBlocking,
       &DeleteImageFile,
       {204},
       Change()},
      {"GET", "/v1/hosts", Access::kAdmin, kBlocking, &ListHosts, {200}, reads},
      {"POST", "/v1/hosts/{id}/drain", Access::kAdmin, kBlocking, &DrainHost, {200}, OfHost()},
      {"POST",
       "/v1/hosts/{id}/activate",
       Access::kAdmin,
       kBlocking,
       &ActivateHost,
       {200},
       OfHost()},
      {"POST", "/v1/hosts/{id}/dead", Access::kAdmin, kBlocking, &DeclareHostDead, {200}, OfHost()},
      {"POST", "/v1/reconcile", Access::kAdmin, kBlocking, &Reconcile, {200}, Change()},
      {"POST", "/v1/tokens", Access::kAdmin, kBlocking, &CreateToken, {200, 201}, OfTokenCreate()},
      {"GET", "/v1/tokens", Access::kAdmin, kBlocking, &ListTokens, {200}, reads},
      {"DELETE",
       "/v1/tokens/{id}",
       Access::kAdmin,
       kBlocking,
       &RevokeToken,
       {200},
       With(Change(), {"token_not_found", "ledger_unavailable"})},
  };
}

std::vector<RouteEntry> ServiceRoutes() {
  const Codes reads = {"ledger_unavailable"};
  return {
      {"GET", "/v1/capabilities", Access::kViewer, kBlocking, &GetCapabilities, {200}, reads},
      {"GET", "/v1/quota", Access::kViewer, kBlocking, &GetQuota, {200}, reads},
      {"GET", "/openapi.json", Access::kOpen, kInline, &GetContract, {200}, {}},
      {"GET", "/healthz", Access::kOpen, kInline, &GetHealth, {200}, {}},
      {"GET",
       "/readyz",
       Access::kOpen,
       kBlocking,
       &GetReadiness,
       {200},
       {"ledger_unavailable", "hypervisor_unavailable"}},
      {"GET", "/metrics", Access::kMetrics, kBlocking, &GetMetrics, {200}, {}},
  };
}

}  // namespace

std::vector<RouteEntry> AllRoutes() {
  std::vector<RouteEntry> all;
  for (auto& part : {VmRoutes(), OperationRoutes(), OperatorRoutes(), ServiceRoutes()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace vmonce::rest
