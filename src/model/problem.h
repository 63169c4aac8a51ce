// A refusal or failure in terms every face can translate: REST to RFC 9457, others to their own
// errors.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/ids.h"
#include "model/operation.h"

namespace vmonce::model {

// One row per code that any answer can carry: its HTTP status, title, and whether a retry, and a
// retry with the same key, makes sense.
//   retryable       the same request, unmended, may succeed by waiting alone
//   retry_same_key  the key was not consumed, or names what is still to come: a retry, mended or
//                   not, carries the same key
// The table is the documentation (docs/problems.md is held to
// it by a test).
struct ProblemKind {
  std::string_view code;
  int status;
  std::string_view title;
  bool retryable;
  bool retry_same_key;
};

struct FieldProblem {
  std::string pointer;  // RFC 6901, into the body; or a header's or parameter's name.
  std::string detail;
};

struct Problem {
  std::string code;                    // A row of the table.
  std::string detail;                  // What happened, what it means, what to do.
  std::optional<bool> retry_same_key;  // When it differs from the table.
  std::optional<std::chrono::seconds> retry_after;
  std::optional<OperationId> operation;
  std::optional<VmId> vm;              // The VM in the way, or the one the key made.
  std::optional<Time> first_seen;      // Of the key's first request.
  std::vector<std::string> differing;  // JSON pointers, never values.
  std::vector<FieldProblem> fields;
};

// Every code must be in the table: an unknown one is a bug (CHECK). The reference is good forever.
const ProblemKind& KindOf(std::string_view code);
std::vector<ProblemKind> AllProblemKinds();

}  // namespace vmonce::model
