// Owners of libvirt's objects, and its errors as values.
#pragma once

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/result.h"

namespace vmonce::hypervisor {

template <auto Free>
struct LibvirtFree {
  template <typename Object>
  void operator()(Object* object) const {
    Free(object);
  }
};

using DomainHandle = std::unique_ptr<virDomain, LibvirtFree<virDomainFree>>;
using PoolHandle = std::unique_ptr<virStoragePool, LibvirtFree<virStoragePoolFree>>;
using VolumeHandle = std::unique_ptr<virStorageVol, LibvirtFree<virStorageVolFree>>;
using StreamHandle = std::unique_ptr<virStream, LibvirtFree<virStreamFree>>;
using NetworkHandle = std::unique_ptr<virNetwork, LibvirtFree<virNetworkFree>>;
using LibvirtText = std::unique_ptr<char, LibvirtFree<std::free>>;

// Why the last libvirt call of this thread failed. Only `code` and `domain` are branched on.
struct LibvirtFault {
  int code = VIR_ERR_OK;       // virErrorNumber
  int domain = VIR_FROM_NONE;  // virErrorDomain
  std::string message;
};
LibvirtFault LastFault();

// The hypervisor itself answered: not the transport to it, so nothing of the call is still under
// way.
bool IsReply(const LibvirtFault& fault, virConnectPtr connection);

// The same order never succeeds there.
bool IsFinal(const LibvirtFault& fault);

// An error of a look: it had no effect.
std::unexpected<Error> LookFailed(std::string_view what, const LibvirtFault& fault);

}  // namespace vmonce::hypervisor
