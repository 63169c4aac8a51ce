// Waiting for an operation, while the server may go away and come back.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "app/invocation.h"
#include "app/progress.h"

namespace vmonce::app {

enum class WaitFor { kAccepted, kStarted, kEnd };

enum class FollowEnd {
  kReached,      // What was waited for, or the operation's end.
  kTimedOut,     // The time is over; the operation goes on.
  kUnanswered,   // The time is over, and the server did not answer at the end of it.
  kInterrupted,  // Ctrl-C.
  kRefused,      // The server knows no such operation, or does not let us see it.
};

struct FollowResult {
  FollowEnd end = FollowEnd::kTimedOut;
  boost::json::value operation;  // As last seen; null when never.
  client::CallResult last;       // The last call.
};

// Polls until `wait_for` is reached or Deadline(run) has passed. `known` is what has been seen of
// the operation already, null when nothing.
FollowResult Follow(const Invocation& run, std::string_view operation_id, WaitFor wait_for,
                    Progress& progress, boost::json::value known = nullptr);

bool HasEnded(const boost::json::value& operation);

// The failure of the operation, or else of its first failed item: {code, detail, retryable}; null
// when there is none.
boost::json::value FailureOf(const boost::json::value& operation);

// Says how an operation that is no create ended, or how its waiting did: `done` when it succeeded.
ExitCode ReportEnd(const Invocation& run, const FollowResult& followed, std::string_view what,
                   std::string_view done);

// Cause, repair, last lines of the timeline, operation id, the API's code.
void ReportOperationFailure(const Invocation& run, const boost::json::value& operation,
                            std::string_view what);

}  // namespace vmonce::app
