// The REST face: translates between HTTP and the service, and nothing more. api/openapi.yaml is its
// contract; a test holds the routes to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/seal.h"
#include "base/threads.h"
#include "http/router.h"
#include "model/host.h"
#include "model/operation.h"
#include "model/retention.h"
#include "service/authenticator.h"
#include "service/host_admin.h"
#include "service/image_service.h"
#include "service/key_admin.h"
#include "service/queries.h"
#include "service/quotas.h"
#include "service/rate_limiter.h"
#include "service/reconciler.h"
#include "service/tokens.h"
#include "service/vm_service.h"

namespace vmonce::rest {

// What GET /v1/capabilities publishes beside the limits: the settings of this service.
struct Capabilities {
  std::string version;
  model::RetentionPolicy retention;
  service::Quotas quotas;
  std::int64_t max_backlog = 0;
  std::chrono::seconds wait_cap{};
};

// All that is borrowed outlives the last request and the last answer of the service.
struct RestParts {
  service::VmService& vms;
  service::Queries& queries;
  service::ImageService& images;
  service::Reconciler& reconciler;
  service::HostAdmin& hosts;
  service::KeyAdmin& keys;
  service::Authenticator& authenticator;
  service::Tokens& tokens;
  const Sealer& sealer;
  Clock& clock;
  Threads& threads;
  Logger& logger;
  service::Rate rate;  // Of each token.
  Capabilities capabilities;
  // The text of GET /metrics. May block.
  std::function<std::string()> metrics;
  // The name of a saga's step; empty past its end. Thread-safe, does not block.
  std::function<std::string(model::OperationKind, int)> step_name;
};

// Adds every route of the contract.
void RegisterRest(http::Router& router, RestParts parts);

}  // namespace vmonce::rest
