// GET /v1/capabilities as a value.
#include "api/rest/json_of.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
namespace limits = model::limits;

std::int64_t Seconds(std::chrono::seconds duration) { return duration.count(); }

json::object Idempotency(const model::RetentionPolicy& retention) {
  json::object object;
  object["key_header"] = "Idempotency-Key";
  object["key_bytes"] = limits::kKeyBytes;
  object["required_on"] = json::array{"POST /v1/vms"};
  object["optional_on"] = json::array{
      "PATCH /v1/vms/{id}",     "DELETE /v1/vms/{id}",      "POST /v1/vms/{id}/start",
      "POST /v1/vms/{id}/stop", "POST /v1/vms/{id}/reboot",
  };
  // Records of unfinished work, and of a VM that lives, never expire.
  object["retention_s"] = Seconds(retention.retention);
  object["tombstone_retention_s"] = Seconds(retention.tombstone_retention);
  object["key_ttl_s"] = Seconds(retention.key_ttl);
  object["in_progress_status"] = 202;
  object["mismatch_status"] = 422;
  object["expired_status"] = 410;
  object["replay_header"] = "Idempotent-Replayed";
  object["first_seen_header"] = "Idempotency-First-Seen";
  object["expires_header"] = "Idempotency-Expires";
  return object;
}

json::object Limits(const Capabilities& capabilities) {
  json::object object;
  object["body_bytes"] = limits::kBodyBytes;
  object["header_bytes"] = limits::kHeaderBytes;
  object["user_data_bytes"] = limits::kUserDataBytes;
  object["name_bytes"] = limits::kNameBytes;
  object["hostname_bytes"] = limits::kHostnameBytes;
  object["ssh_keys"] = limits::kSshKeys;
  object["ssh_key_bytes"] = limits::kSshKeyBytes;
  object["labels"] = limits::kLabels;
  object["label_key_bytes"] = limits::kLabelKeyBytes;
  object["label_value_bytes"] = limits::kLabelValueBytes;
  object["count"] = limits::kBatchCount;
  object["cpus"] = limits::kCpus;
  object["memory_mib_min"] = limits::kMinMemoryMib;
  object["memory_mib"] = limits::kMemoryMib;
  object["disk_gib"] = limits::kDiskGib;
  object["page_items"] = limits::kPageItems;
  object["page_items_default"] = limits::kPageItemsDefault;
  object["console_bytes"] = limits::kConsoleBytes;
  object["prefer_wait_s"] = Seconds(std::min(capabilities.wait_cap, limits::kPreferWait));
  object["retry_after_max_s"] = Seconds(limits::kRetryAfterMax);
  object["backlog"] = capabilities.max_backlog;
  return object;
}

}  // namespace

json::object JsonOf(const service::ProjectQuota& quota) {
  json::object object = JsonOf(quota.amounts);
  object["keys"] = quota.keys;
  return object;
}

json::object JsonOf(const Capabilities& capabilities, const service::Caller& caller,
                    const model::Resources& usage) {
  json::object object;
  object["version"] = capabilities.version;
  object["idempotency"] = Idempotency(capabilities.retention);
  object["limits"] = Limits(capabilities);
  object["project"] = caller.project.value;
  object["role"] = ToString(caller.role);
  object["quota"] = JsonOf(capabilities.quotas.Of(caller.project).amounts);
  object["usage"] = JsonOf(usage);
  return object;
}

}  // namespace vmonce::rest
