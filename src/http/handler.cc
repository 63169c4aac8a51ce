#include "http/handler.h"

#include <utility>

#include "base/check.h"
#include "http/problem.h"

namespace vmonce::http {

Responder::Responder(std::shared_ptr<AnswerSink> sink, Exchange exchange)
    : promise_(std::make_shared<Promise>(std::move(sink), exchange)) {}

void Responder::operator()(Answer answer) const {
  CHECK_MSG(promise_ != nullptr, "a moved-from responder was called");
  CHECK_MSG(!promise_->answered.exchange(true), "a request was answered twice");
  promise_->sink->Deliver(promise_->exchange, std::move(answer));
}

Responder::Promise::~Promise() {
  if (!answered) sink->Deliver(exchange, ToResponse(InternalError()));
}

}  // namespace vmonce::http
