// From method and path to handler. Paths are matched as sent: nothing is normalised, a literal
// segment matches byte for byte, and only a parameter is decoded.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/handler.h"
#include "http/message.h"

namespace vmonce::http {

struct Route {
  std::string method;
  // "/v1/vms/{id}": a segment is a literal or one parameter. Also the label of the route in
  // metrics.
  std::string path_template;
  HandlerMode mode;
  Handler handler;
  // Where only some requests of a route block: decides instead of `mode`, on the io thread.
  std::function<HandlerMode(const Request&)> mode_of;
  // Whether this request may be served at all, by its header alone: before its body is taken, on
  // the io thread, and never again once it has set request.principal. A response is the refusal.
  // Empty: anybody may.
  std::function<std::optional<Response>(Request&)> admit;
};

// Filled before it serves, then only read: no locks.
class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // Precondition: the template is well formed, and method and template (whatever its parameters are
  // called) were not added before. GET serves HEAD too.
  void Add(std::string method, std::string path_template, HandlerMode mode, Handler handler);
  void Add(Route route);

  struct Match {
    // Null when nothing serves the path (then `allow` is empty) or not by that method.
    const Route* route = nullptr;
    // "GET, HEAD, OPTIONS, POST": what the path serves. OPTIONS itself has no route: a dispatcher
    // answers it from this.
    std::string allow;
  };
  // Fills request.path_params. A literal goes before a parameter. A parameter never matches an
  // empty segment, nor one that decodes to ".", ".." or anything with a slash or backslash in it.
  Match Find(Request& request) const;

  // In the order of Add.
  const std::deque<Route>& routes() const { return routes_; }

 private:
  struct Node;
  // A deque, since the nodes point into it.
  std::deque<Route> routes_;
  std::unique_ptr<Node> root_;
};

}  // namespace vmonce::http
