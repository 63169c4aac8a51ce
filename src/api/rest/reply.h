// Answers: statuses, headers and problem documents (protocol sections 6 and 13).
#pragma once

#include <boost/json.hpp>
#include <chrono>

#include "api/rest/json_of.h"
#include "base/clock.h"
#include "http/message.h"
#include "model/problem.h"
#include "service/vm_service.h"

namespace vmonce::rest {

// application/problem+json. A code that is in no row of the table of problems (a stored failure
// of an older version) is answered as `hypervisor_refused`, with the code in its detail. A
// Retry-After is within [1 s, limits::kRetryAfterMax].
http::Response Reply(const model::Problem& problem);

// The problem of an operation that failed, which a replay of the same key gives too.
model::Problem FailureProblem(const model::Operation& operation);

// How the answer of a change is told.
struct Telling {
  StepName step_name;
  Time now;
  std::chrono::seconds wait{0};  // What `Prefer: wait` asked for.
};

// POST /v1/vms: 202 while it is being created; 201 when a first request waited for the end; 200 for
// a replay of what has ended. An operation that failed is its problem, but one whose VMs the user
// has deleted since.
http::Response ReplyCreate(const service::Answer& answer, const Telling& telling);

// Every other change: 202 while the operation runs, 200 when it has ended or there was none to
// wait for. `vm` is absent when the answer has no VM.
http::Response ReplyChange(const service::Answer& answer, const Telling& telling);

// One VM, with its ETag.
http::Response ReplyVm(const model::Vm& vm);

// {"items": …, "next": cursor or null}. The items are JSON texts.
http::Response ReplyPage(const std::vector<std::string>& items, const std::string& next);
http::Response ReplyItems(boost::json::array items);

http::Response ReplyDryRun(const service::DryRun& run, const StepName& step_name);

// How long a client should wait before it asks again: the longer nothing was recorded, the longer.
std::chrono::seconds RetryAfter(const model::Operation& operation, Time now);

}  // namespace vmonce::rest
