// The routes of this face as one table: what registers them, and what a test compares with the
// contract.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/rest/handlers.h"
#include "http/router.h"

namespace vmonce::rest {

struct RouteEntry {
  std::string method;
  std::string path_template;
  http::HandlerMode mode;
  Handle handle;
  std::vector<int> successes;
  // The codes that the handler or the service behind it may answer with, beside what every route
  // may (kCommonProblems) and what the server answers before a handler is asked.
  std::vector<std::string_view> problems;
};

// Of every route, whatever it does.
inline constexpr std::string_view kCommonProblems[] = {"invalid_request", "internal", "overloaded"};

std::vector<RouteEntry> AllRoutes();

}  // namespace vmonce::rest
