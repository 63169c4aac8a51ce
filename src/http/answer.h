// What a handler may answer with: a response; one that was written before; or the way to write one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "http/message.h"

namespace vmonce::http {

// A response whose lines were checked and written once, for what is answered again and again.
struct WrittenResponse {
  int status = 200;
  // The head without the status line and without what each request has of its own.
  std::string lines;
  std::string body;
};
// Shared by all that send it.
using WrittenPointer = std::shared_ptr<const WrittenResponse>;

// Called on the io thread, and only when somebody is there to be answered: must not block. For
// answers that are made on a thread that others wait for.
using ResponseMaker = std::move_only_function<Response()>;

using Answer = std::variant<Response, WrittenPointer, ResponseMaker>;

}  // namespace vmonce::http
