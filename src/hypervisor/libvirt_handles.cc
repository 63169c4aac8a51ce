#include "hypervisor/libvirt_handles.h"

#include <fmt/format.h>

namespace vmonce::hypervisor {

LibvirtFault LastFault() {
  const virErrorPtr error = virGetLastError();
  if (error == nullptr) return {};
  return {.code = error->code,
          .domain = error->domain,
          .message = error->message == nullptr ? "" : error->message};
}

bool IsReply(const LibvirtFault& fault, virConnectPtr connection) {
  switch (fault.domain) {
    case VIR_FROM_RPC:
    case VIR_FROM_REMOTE:
    case VIR_FROM_STREAMS:
    case VIR_FROM_SSH:
    case VIR_FROM_LIBSSH: return false;
    default: break;
  }
  return fault.code != VIR_ERR_OK && fault.code != VIR_ERR_RPC &&
         virConnectIsAlive(connection) == 1;
}

bool IsFinal(const LibvirtFault& fault) {
  switch (fault.code) {
    case VIR_ERR_XML_ERROR:
    case VIR_ERR_XML_DETAIL:
    case VIR_ERR_XML_INVALID_SCHEMA:
    case VIR_ERR_CONFIG_UNSUPPORTED:
    case VIR_ERR_NO_SUPPORT:
    case VIR_ERR_ARGUMENT_UNSUPPORTED: return true;
    default: return false;
  }
}

std::unexpected<Error> LookFailed(std::string_view what, const LibvirtFault& fault) {
  return Fail(ErrorCode::kUnavailable, fmt::format("{}: {}", what, fault.message));
}

}  // namespace vmonce::hypervisor
