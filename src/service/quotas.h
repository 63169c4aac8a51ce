// What each project may hold at once.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "model/host.h"
#include "model/ids.h"

namespace vmonce::service {

struct ProjectQuota {
  model::Resources amounts;
  // Records with an idempotency key.
  std::int64_t keys = std::numeric_limits<std::int64_t>::max();

  bool operator==(const ProjectQuota&) const = default;
};

// Immutable; thread-safe.
class Quotas {
 public:
  explicit Quotas(ProjectQuota others, std::map<model::ProjectId, ProjectQuota> named = {})
      : others_(others), named_(std::move(named)) {}

  // The reference lives as long as this.
  const ProjectQuota& Of(const model::ProjectId& project) const {
    const auto found = named_.find(project);
    return found == named_.end() ? others_ : found->second;
  }

 private:
  ProjectQuota others_;
  std::map<model::ProjectId, ProjectQuota> named_;
};

}  // namespace vmonce::service
