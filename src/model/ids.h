// The ids of the domain, each its own type.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/uuid.h"

namespace vmonce::model {

// A VM's id is its libvirt domain UUID.
using VmId = StrongUuid<struct VmTag>;
using OperationId = StrongUuid<struct OperationTag>;
// Of the record, not of the secret: it may be shown.
using TokenId = StrongUuid<struct TokenTag>;

template <typename Tag>
struct StrongText {
  std::string value;
  auto operator<=>(const StrongText&) const = default;
};

// The tenant; comes from the caller's credentials, never from the request.
using ProjectId = StrongText<struct ProjectTag>;
// One hypervisor connection, named in the configuration.
using HostId = StrongText<struct HostTag>;
// One ledger: 12 lower-case hexadecimal digits, made once when the ledger is made.
using LedgerId = StrongText<struct LedgerTag>;
// One running service process: "r-" and 16 hexadecimal digits, new at every start.
using ReplicaId = StrongText<struct ReplicaTag>;

}  // namespace vmonce::model
