// The contract as GET /openapi.json serves it: api/openapi.yaml as JSON. contract.cc is generated
// by tools/openapi_json and held to it by a test.
#pragma once

#include <string_view>

namespace vmonce::rest {

std::string_view ContractJson();

}  // namespace vmonce::rest
