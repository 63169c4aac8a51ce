#include "api/rest/rest.h"

#include <memory>
#include <utility>

#include "api/rest/parse_body.h"
#include "api/rest/routes.h"

namespace vmonce::rest {

void RegisterRest(http::Router& router, RestParts parts) {
  const auto face = std::make_shared<Face>(std::move(parts));
  for (RouteEntry& entry : AllRoutes()) {
    http::Route route;
    const bool is_create = entry.handle == &CreateVm;
    route.method = std::move(entry.method);
    route.path_template = std::move(entry.path_template);
    route.mode = entry.mode;
    route.handler = [face, handle = entry.handle](http::Request request, http::Responder respond) {
      handle(face, std::move(request), std::move(respond));
    };
    // A create only queues; what it would do is looked up.
    if (is_create) {
      route.mode_of = [](const http::Request& request) {
        return IsDryRun(request) ? http::HandlerMode::kBlocking : http::HandlerMode::kInline;
      };
    }
    // The registered route, and nothing that a handler does, decides who may.
    if (entry.access != Access::kOpen) {
      route.admit = [face, access = entry.access](http::Request& request) {
        return face->gate.Admit(access, request);
      };
    }
    router.Add(std::move(route));
  }
}

}  // namespace vmonce::rest
