#include "http/router.h"

#include <gtest/gtest.h>

namespace vmonce::http {
namespace {

class RouterTest : public testing::Test {
 protected:
  RouterTest() {
    for (const auto& [method, path] :
         std::vector<std::pair<std::string, std::string>>{{"GET", "/v1/vms"},
                                                          {"POST", "/v1/vms"},
                                                          {"GET", "/v1/vms/{id}"},
                                                          {"DELETE", "/v1/vms/{id}"},
                                                          {"POST", "/v1/vms/{id}/start"},
                                                          {"GET", "/v1/vms/stats"},
                                                          {"GET", "/v1/{kind}/stats/all"},
                                                          {"GET", "/"},
                                                          {"PATCH", "/only/patch"}}) {
      router_.Add(method, path, HandlerMode::kInline, [](Request, Responder) {});
    }
  }

  // "GET /v1/vms id=a", or "405 GET, HEAD", or "404".
  std::string Find(std::string method, std::string path) {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    const Router::Match match = router_.Find(request);
    if (match.route == nullptr) return match.allow.empty() ? "404" : "405 " + match.allow;
    std::string text = match.route->method + " " + match.route->path_template;
    for (const NamedValue& param : request.path_params)
      text += " " + param.name + "=" + param.value;
    return text;
  }

  Router router_;
};

TEST_F(RouterTest, FindsTheRouteAndDecodesItsParameters) {
  EXPECT_EQ(Find("POST", "/v1/vms"), "POST /v1/vms");
  EXPECT_EQ(Find("GET", "/v1/vms/a%20b"), "GET /v1/vms/{id} id=a b");
  EXPECT_EQ(Find("POST", "/v1/vms/7/start"), "POST /v1/vms/{id}/start id=7");
  EXPECT_EQ(Find("GET", "/"), "GET /");
}

TEST_F(RouterTest, PrefersALiteralAndComesBackFromADeadEnd) {
  EXPECT_EQ(Find("GET", "/v1/vms/stats"), "GET /v1/vms/stats");
  EXPECT_EQ(Find("GET", "/v1/vms/stats/all"), "GET /v1/{kind}/stats/all kind=vms");
}

TEST_F(RouterTest, ServesHeadByGet) {
  EXPECT_EQ(Find("HEAD", "/v1/vms"), "GET /v1/vms");
  EXPECT_EQ(Find("HEAD", "/only/patch"), "405 OPTIONS, PATCH");
}

TEST_F(RouterTest, NamesTheMethodsOfAPathThatServesOthers) {
  EXPECT_EQ(Find("PUT", "/v1/vms"), "405 GET, HEAD, OPTIONS, POST");
  EXPECT_EQ(Find("POST", "/v1/vms/1"), "405 DELETE, GET, HEAD, OPTIONS");
  EXPECT_EQ(Find("get", "/v1/vms"), "405 GET, HEAD, OPTIONS, POST");
}

TEST_F(RouterTest, MatchesNoLookAlikePath) {
  for (const std::string path : {"/v1",
                                 "/v1/vms/",
                                 "//v1/vms",
                                 "/v1//vms",
                                 "/v1/./vms",
                                 "/v1/x/../vms",
                                 "/V1/vms",
                                 "/v1/%76ms",
                                 "/v1/vms/1/",
                                 "/v1/vms/1/stop",
                                 "/v1/vms/1/start/",
                                 "",
                                 "*",
                                 "v1/vms",
                                 "/v1/vms/..",
                                 "/v1/vms/.",
                                 "/v1/vms/%2e%2e",
                                 "/v1/vms/%2E",
                                 "/v1/vms/a%2Fb",
                                 "/v1/vms/a%5cb",
                                 "/v1/vms/a%00",
                                 "/v1/vms/%zz"}) {
    EXPECT_EQ(Find("GET", path), "404") << path;
  }
}

TEST_F(RouterTest, KnowsItsRoutesInOrder) {
  ASSERT_EQ(router_.routes().size(), 9u);
  EXPECT_EQ(router_.routes().front().path_template, "/v1/vms");
  EXPECT_EQ(router_.routes().back().method, "PATCH");
}

TEST_F(RouterTest, EndsTheProcessOnARouteTwice) {
  EXPECT_DEATH(
      router_.Add("GET", "/v1/vms/{other}", HandlerMode::kInline, [](Request, Responder) {}),
      "CHECK|router");
}

}  // namespace
}  // namespace vmonce::http
