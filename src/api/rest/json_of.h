// Representations: what the API shows of the service's values. Pure; the names and forms are those
// of api/openapi.yaml.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <string>
#include <vector>

#include "api/rest/rest.h"
#include "model/operation.h"
#include "model/token.h"
#include "model/vm.h"
#include "service/queries.h"
#include "service/reconciler.h"
#include "service/vm_service.h"

namespace vmonce::rest {

using StepName = std::function<std::string(model::OperationKind, int)>;

std::string VmUrl(const model::VmId& id);
std::string OperationUrl(const model::OperationId& id);

// What is answered most is written as JSON text at once; of the rest a value is made first.
std::string TextOf(const model::Vm& vm);
std::string TextOf(const model::Operation& operation, const StepName& step_name);

boost::json::object JsonOf(const model::Resources& resources);
boost::json::object JsonOf(const model::Image& image);  // Of the configuration.
boost::json::object JsonOf(const model::StoredImage& image);
boost::json::object JsonOf(const service::HostView& view);
boost::json::object JsonOf(const workflows::ReconcileReport& report);
// Never its hash.
boost::json::object JsonOf(const model::Token& token, Time now);

// The story of an operation, which begins with its acceptance whether the ledger has a line of it
// or not.
boost::json::array TimelineOf(const model::Operation& operation,
                              const std::vector<model::TimelineEntry>& entries);

// Every figure of protocol section 7 and the limits that a client needs.
boost::json::object JsonOf(const Capabilities& capabilities, const service::Caller& caller,
                           const model::Resources& usage);
boost::json::object JsonOf(const service::ProjectQuota& quota);

// "create", "new_attempt", ...
std::string_view WordOf(service::DryRun::Would would);

// The URI with `***` in place of a password in its user part or its parameters.
std::string WithoutPassword(const std::string& uri);

}  // namespace vmonce::rest
