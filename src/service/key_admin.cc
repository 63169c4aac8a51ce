#include "service/key_admin.h"

namespace vmonce::service {

Answered<KeyAdmin::Release> KeyAdmin::ReleaseKey(const Caller& caller,
                                                 const model::IdempotencyKey& key) {
  const std::string by = NameOf(caller);
  auto released = keys_.ReleaseKey(caller.project, model::KeyHash(key), by);
  if (!released) {
    if (released.error().code == ErrorCode::kNotFound) return Release{};
    if (released.error().code != ErrorCode::kConflict) {
      return std::unexpected(LedgerProblem(released.error()));
    }
    model::Problem problem;
    problem.code = "key_in_use";
    problem.detail = "Nothing was done: " + released.error().detail +
                     ". A key can be released when its work has ended and its VMs are deleted.";
    return std::unexpected(std::move(problem));
  }
  logger_.Info("key_released",
               {{"project", caller.project.value},
                {"key_prefix", model::RedactedPrefix(key)},
                {"vm", released->vms.empty() ? "" : ToString(released->vms.front())},
                {"by", by}});
  return Release{.was_known = true, .vms = std::move(released->vms)};
}

}  // namespace vmonce::service
