#include "api/rest/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/rest/contract_check.h"
#include "model/limits.h"
#include "model/problem.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
namespace limits = model::limits;

// "GET /v1/vms" → the statuses that it may answer with.
using Surface = std::map<std::string, std::set<int>>;

Surface SurfaceOfContract(const ContractCheck& contract) {
  Surface surface;
  for (const auto& path : contract.document().at("paths").get_object()) {
    for (const auto& method : path.value().get_object()) {
      if (method.key() == "parameters") continue;
      std::string name(method.key());
      std::ranges::transform(name, name.begin(), [](char c) { return std::toupper(c); });
      std::set<int>& statuses = surface[name + " " + std::string(path.key())];
      for (const auto& response : method.value().at("responses").get_object()) {
        if (response.key() != "default") statuses.insert(std::stoi(std::string(response.key())));
      }
    }
  }
  return surface;
}

Surface SurfaceOfRoutes() {
  Surface surface;
  for (const RouteEntry& route : AllRoutes()) {
    std::set<int>& statuses = surface[route.method + " " + route.path_template];
    statuses.insert(route.successes.begin(), route.successes.end());
    for (const std::string_view code : route.problems) {
      statuses.insert(model::KindOf(code).status);
    }
    for (const std::string_view code : kCommonProblems) {
      statuses.insert(model::KindOf(code).status);
    }
    if (route.access == Access::kOpen) continue;
    for (const std::string_view code : kGateProblems) {
      statuses.insert(model::KindOf(code).status);
    }
  }
  return surface;
}

TEST(Routes, AreThoseOfTheContractWithTheSameStatuses) {
  EXPECT_EQ(SurfaceOfRoutes(), SurfaceOfContract(ContractCheck()));
}

TEST(Routes, EveryProblemIsOneThatClientsCanBranchOn) {
  const ContractCheck contract;
  for (const auto& path : contract.document().at("paths").get_object()) {
    for (const auto& method : path.value().get_object()) {
      if (method.key() == "parameters") continue;
      for (const auto& response : method.value().at("responses").get_object()) {
        if (response.key()[0] < '4') continue;
        EXPECT_EQ(response.value().at("$ref"), "#/components/responses/Problem")
            << path.key() << " " << response.key();
      }
    }
  }
}

TEST(Routes, WhatReadsTheLedgerIsNotOnTheIoThread) {
  const std::set<std::string> inline_reads = {"/openapi.json", "/healthz"};
  for (const RouteEntry& route : AllRoutes()) {
    if (route.method != "GET") continue;
    const bool is_inline = route.mode == http::HandlerMode::kInline;
    EXPECT_EQ(is_inline, inline_reads.contains(route.path_template)) << route.path_template;
  }
}

TEST(Routes, OnlyProbesAndTheContractAreOpen) {
  std::set<std::string> open;
  std::set<std::string> of_the_operator;
  for (const RouteEntry& route : AllRoutes()) {
    const std::string name = route.method + " " + route.path_template;
    if (route.access == Access::kOpen) open.insert(name);
    if (route.access >= Access::kAdmin) of_the_operator.insert(name);
    // Who may only read changes nothing.
    if (route.method == "GET") continue;
    EXPECT_GE(route.access, Access::kMember) << name;
  }
  EXPECT_EQ(open, (std::set<std::string>{"GET /openapi.json", "GET /healthz", "GET /readyz"}));
  for (const char* name : {"GET /v1/hosts", "POST /v1/reconcile", "POST /v1/tokens",
                           "GET /v1/tokens", "DELETE /v1/tokens/{id}", "GET /metrics"}) {
    EXPECT_TRUE(of_the_operator.contains(name)) << name;
  }
}

TEST(Contract, EveryRouteThatIsNotOpenSaysThatItNeedsAToken) {
  const ContractCheck contract;
  EXPECT_TRUE(contract.document().contains("security"));
  for (const RouteEntry& route : AllRoutes()) {
    std::string method = route.method;
    std::ranges::transform(method, method.begin(), [](char c) { return std::tolower(c); });
    const json::object& operation =
        contract.document().at("paths").at(route.path_template).at(method).get_object();
    const json::value* security = operation.if_contains("security");
    const bool is_open = security != nullptr && security->get_array().empty();
    EXPECT_EQ(is_open, route.access == Access::kOpen) << route.path_template;
  }
}

TEST(Contract, BoundsAreThoseOfTheLimits) {
  const ContractCheck contract;
  const auto bound = [&](std::string_view schema, std::string_view name, std::string_view rule) {
    return contract.Resolve("#/components/schemas/" + std::string(schema))
        .at("properties")
        .at(name)
        .at(rule)
        .to_number<std::int64_t>();
  };
  EXPECT_EQ(bound("CreateRequest", "count", "maximum"), limits::kBatchCount);
  EXPECT_EQ(bound("CreateRequest", "cpus", "maximum"), limits::kCpus);
  EXPECT_EQ(bound("CreateRequest", "memory_mib", "minimum"), limits::kMinMemoryMib);
  EXPECT_EQ(bound("CreateRequest", "memory_mib", "maximum"), limits::kMemoryMib);
  EXPECT_EQ(bound("CreateRequest", "disk_gib", "maximum"), limits::kDiskGib);
  EXPECT_EQ(bound("CreateRequest", "ssh_keys", "maxItems"), std::int64_t{limits::kSshKeys});
  EXPECT_EQ(bound("CreateRequest", "hostname", "maxLength"), std::int64_t{limits::kHostnameBytes});
  const json::value& limit = contract.Resolve("#/components/parameters/Limit").at("schema");
  EXPECT_EQ(limit.at("maximum"), limits::kPageItems);
  EXPECT_EQ(limit.at("default"), limits::kPageItemsDefault);
  const json::value& labels = contract.Resolve("#/components/schemas/Labels");
  EXPECT_EQ(labels.at("maxProperties"), limits::kLabels);
  EXPECT_EQ(labels.at("additionalProperties").at("maxLength"), limits::kLabelValueBytes);
  EXPECT_EQ(contract.Resolve("#/components/schemas/Name").at("maxLength"), limits::kNameBytes);
  EXPECT_EQ(contract.Resolve("#/components/headers/RetryAfter").at("schema").at("maximum"),
            limits::kRetryAfterMax.count());
}

}  // namespace
}  // namespace vmonce::rest
