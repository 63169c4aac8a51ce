// The routes of this face as one table: what registers them, and what a test compares with the
// contract.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/rest/gate.h"
#include "api/rest/handlers.h"
#include "http/router.h"

namespace vmonce::rest {

struct RouteEntry {
  std::string method;
  std::string path_template;
  // Stated for every route: without it the table does not compile.
  Access access;
  http::HandlerMode mode;
  Handle handle;
  std::vector<int> successes;
  // The codes that the handler or the service behind it may answer with, beside what every route
  // may (kCommonProblems) and what the server answers before a handler is asked.
  std::vector<std::string_view> problems;
};

// Of every route, whatever it does.
inline constexpr std::string_view kCommonProblems[] = {"invalid_request", "internal", "overloaded"};
// Of every route that is not open.
inline constexpr std::string_view kGateProblems[] = {"unauthenticated", "forbidden", "rate_limited",
                                                     "ledger_unavailable"};

std::vector<RouteEntry> AllRoutes();

}  // namespace vmonce::rest
