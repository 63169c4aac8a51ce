#include "model/problem.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace vmonce::model {
namespace {

std::filesystem::path DocumentPath() {
  return std::filesystem::path(__FILE__).parent_path() / "../../docs/problems.md";
}

std::string Trim(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// The cells of every row of the document's table whose first cell is a `code`.
std::vector<std::vector<std::string>> DocumentRows() {
  std::ifstream file(DocumentPath());
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::size_t start = 1;
    for (std::size_t bar = line.find('|', start); bar != std::string::npos;
         bar = line.find('|', start)) {
      cells.push_back(Trim(std::string_view(line).substr(start, bar - start)));
      start = bar + 1;
    }
    rows.push_back(cells);
  }
  return rows;
}

std::string YesOrNo(bool value) { return value ? "yes" : "no"; }

TEST(Problem, TableIsTheOneInTheDocumentation) {
  const auto rows = DocumentRows();
  const auto kinds = AllProblemKinds();
  ASSERT_EQ(rows.size(), kinds.size()) << DocumentPath();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const ProblemKind& kind = kinds[i];
    ASSERT_EQ(rows[i].size(), 6u) << kind.code;
    EXPECT_EQ(rows[i][0], "`" + std::string(kind.code) + "`");
    EXPECT_EQ(rows[i][1], std::to_string(kind.status)) << kind.code;
    EXPECT_EQ(rows[i][2], kind.title) << kind.code;
    EXPECT_EQ(rows[i][3], YesOrNo(kind.retryable)) << kind.code;
    EXPECT_EQ(rows[i][4], YesOrNo(kind.retry_same_key)) << kind.code;
    EXPECT_NE(rows[i][5], "") << kind.code << " does not say what to do";
  }
}

TEST(Problem, CodesAreUniqueAndSnakeCase) {
  std::set<std::string_view> seen;
  for (const ProblemKind& kind : AllProblemKinds()) {
    EXPECT_TRUE(seen.insert(kind.code).second) << kind.code;
    EXPECT_EQ(kind.code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos)
        << kind.code;
    EXPECT_GE(kind.status, 400) << kind.code;
    EXPECT_LE(kind.status, 599) << kind.code;
    EXPECT_FALSE(kind.title.empty()) << kind.code;
  }
}

TEST(Problem, EveryCodeIsFound) {
  for (const ProblemKind& kind : AllProblemKinds()) {
    EXPECT_EQ(KindOf(kind.code).code, kind.code);
    EXPECT_EQ(KindOf(kind.code).status, kind.status);
  }
}

TEST(ProblemDeath, AnUnknownCodeIsABug) {
  EXPECT_DEATH((void)KindOf("no_such_code"), "no_such_code");
  EXPECT_DEATH((void)KindOf(""), "");
}

// What a caller may wait out, it must be able to send again unchanged: the key stays.
TEST(Problem, WhateverIsRetryableKeepsItsKey) {
  for (const ProblemKind& kind : AllProblemKinds()) {
    EXPECT_TRUE(!kind.retryable || kind.retry_same_key) << kind.code;
  }
}

// After 429 and every 503, and after 500, when the outcome may be unknown, retrying is the advice.
TEST(Problem, PassingTroubleIsRetryable) {
  for (const ProblemKind& kind : AllProblemKinds()) {
    const bool passes = kind.status == 429 || kind.status == 500 || kind.status == 503 ||
                        kind.status == 408 || kind.code == "console_not_ready";
    EXPECT_EQ(kind.retryable, passes) << kind.code;
  }
}

// The only codes after which a key is of no more use: it is missing or no key at all, it names
// something else, or what it names has ended for good.
TEST(Problem, OnlyAFewCodesUseUpTheKey) {
  std::set<std::string_view> used_up;
  for (const ProblemKind& kind : AllProblemKinds()) {
    if (!kind.retry_same_key) used_up.insert(kind.code);
  }
  EXPECT_EQ(used_up,
            (std::set<std::string_view>{"conflict", "hypervisor_refused", "idempotency_key_expired",
                                        "idempotency_key_required", "idempotency_key_reused",
                                        "invalid_idempotency_key", "vm_missing"}));
}

TEST(Problem, StatusesAreThoseOfTheContract) {
  const std::vector<std::pair<std::string_view, int>> contract = {
      {"idempotency_key_required", 400},
      {"invalid_idempotency_key", 400},
      {"unauthenticated", 401},
      {"forbidden", 403},
      {"quota_exceeded", 403},
      {"image_not_found", 404},
      {"name_taken", 409},
      {"idempotency_key_expired", 410},
      {"first_sent_too_far", 412},
      {"precondition_failed", 412},
      {"body_too_large", 413},
      {"unsupported_media_type", 415},
      {"idempotency_key_reused", 422},
      {"rate_limited", 429},
      {"no_capacity", 503},
      {"ledger_unavailable", 503},
      {"ledger_behind", 503},
      {"backlog_full", 503},
  };
  for (const auto& [code, status] : contract) EXPECT_EQ(KindOf(code).status, status) << code;
}

}  // namespace
}  // namespace vmonce::model
