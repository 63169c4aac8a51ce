#include "http/router.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

namespace vmonce::http {

struct Router::Node {
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> literals;
  std::unique_ptr<Node> parameter;
  // Those whose template ends here.
  std::vector<const Route*> routes;
};

namespace {

// "/a/b" → a, b; "/" → one empty segment. Precondition: begins with a slash.
std::vector<std::string_view> Segments(std::string_view path) {
  std::vector<std::string_view> segments;
  do {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  } while (!path.empty());
  return segments;
}

bool IsParameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::optional<std::string> ParameterValue(std::string_view segment) {
  Result<std::string> value = PercentDecode(segment, DecodeAs::kPath);
  if (!value || value->empty() || *value == "." || *value == "..") return std::nullopt;
  if (value->find_first_of("/\\") != std::string::npos) return std::nullopt;
  return std::move(*value);
}

// The end node of the first route shape that fits, literals first; null when none does. The depth
// of the recursion is that of the templates, not of the request's path.
template <typename Node>
const Node* Descend(const Node& node, std::span<const std::string_view> segments) {
  if (segments.empty()) return node.routes.empty() ? nullptr : &node;
  const auto rest = segments.subspan(1);
  for (const auto& [literal, child] : node.literals) {
    if (literal != segments[0]) continue;
    if (const Node* found = Descend(*child, rest)) return found;
  }
  if (!node.parameter || !ParameterValue(segments[0])) return nullptr;
  return Descend(*node.parameter, rest);
}

std::string AllowList(const std::vector<const Route*>& routes) {
  std::set<std::string> methods{"OPTIONS"};
  for (const Route* route : routes) {
    methods.insert(route->method);
    if (route->method == "GET") methods.insert("HEAD");
  }
  std::string list;
  for (const std::string& method : methods) list += (list.empty() ? "" : ", ") + method;
  return list;
}

std::vector<NamedValue> Parameters(std::string_view path_template,
                                   std::span<const std::string_view> segments) {
  std::vector<NamedValue> parameters;
  const std::vector<std::string_view> names = Segments(path_template);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!IsParameter(names[i])) continue;
    parameters.push_back({std::string(names[i].substr(1, names[i].size() - 2)),
                          ParameterValue(segments[i]).value_or("")});
  }
  return parameters;
}

}  // namespace

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::Add(std::string method, std::string path_template, HandlerMode mode, Handler handler) {
  Add(Route{std::move(method), std::move(path_template), mode, std::move(handler), nullptr,
            nullptr});
}

void Router::Add(Route route) {
  const std::string& method = route.method;
  const std::string& path_template = route.path_template;
  CHECK_MSG(IsToken(method) && method != "HEAD", method);
  CHECK_MSG(path_template.starts_with('/'), path_template);
  CHECK_MSG(route.handler != nullptr, path_template);
  Node* node = root_.get();
  for (const std::string_view segment : Segments(path_template)) {
    if (IsParameter(segment)) {
      if (!node->parameter) node->parameter = std::make_unique<Node>();
      node = node->parameter.get();
      continue;
    }
    CHECK_MSG(segment.find_first_of("{}%") == std::string_view::npos, path_template);
    auto found = std::ranges::find(node->literals, segment,
                                   [](const auto& entry) { return std::string_view(entry.first); });
    if (found == node->literals.end()) {
      node->literals.emplace_back(segment, std::make_unique<Node>());
      found = std::prev(node->literals.end());
    }
    node = found->second.get();
  }
  for (const Route* other : node->routes) CHECK_MSG(other->method != method, path_template);
  routes_.push_back(std::move(route));
  node->routes.push_back(&routes_.back());
}

Router::Match Router::Find(Request& request) const {
  Match match;
  request.path_params.clear();
  if (!request.path.starts_with('/')) return match;
  const std::vector<std::string_view> segments = Segments(request.path);
  const Node* const node = Descend<Node>(*root_, segments);
  if (node == nullptr) return match;
  const std::string_view asked = request.method;
  const std::string_view method = asked == "HEAD" ? std::string_view("GET") : asked;
  for (const Route* route : node->routes) {
    if (route->method == method) match.route = route;
  }
  if (match.route == nullptr) {
    match.allow = AllowList(node->routes);
    return match;
  }
  request.path_params = Parameters(match.route->path_template, segments);
  return match;
}

}  // namespace vmonce::http
