// An error answer of the API (RFC 9457), as a client reads it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/transport.h"

namespace vmonce::client {

struct ApiProblem {
  int status = 0;
  // The API's stable code. When the answer is no problem document (something between us and the
  // server answered), it is "http_" and the status.
  std::string code;
  std::string title;
  std::string detail;
  bool is_document = false;  // False: nothing below is known.
  bool is_retryable = false;
  std::optional<bool> retry_same_key;
  std::optional<std::chrono::seconds> retry_after;
  std::string operation;
  std::string vm;
  std::string first_seen;
  std::vector<std::pair<std::string, std::string>> fields;  // Pointer and detail.
  std::vector<std::string> differing;                       // JSON pointers.
};

// Never fails: what cannot be read is left empty.
ApiProblem ReadProblem(const HttpResponse& response);

}  // namespace vmonce::client
