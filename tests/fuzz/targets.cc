#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {

std::span<const Target> AllTargets() {
  static constexpr Target kTargets[] = {
      {"answer", FuzzAnswer},
      {"configuration", FuzzConfiguration},
      {"cursor", FuzzCursor},
      {"domain_xml", FuzzDomainXml},
      {"headers", FuzzHeaders},
      {"intent_file", FuzzIntentFile},
      {"json", FuzzJson},
      {"key_header", FuzzKeyHeader},
      {"names", FuzzNames},
      {"request_body", FuzzRequestBody},
      {"request_bytes", FuzzRequestBytes},
      {"service", FuzzService},
      {"stored_json", FuzzStoredJson},
      {"target", FuzzTarget},
  };
  return kTargets;
}

}  // namespace vmonce::fuzz
