// Asio as this folder uses it. Included by connection.* and server.cc alone: it is heavy.
//
// The plain executor type instead of any_io_executor saves a third of the time per request. g++ 12
// miscompiles some coroutines: here every argument of a co_await is a named local, and none stands
// inside a ternary or an initialiser.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "http/handler.h"

namespace vmonce::http {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
using IoError = boost::system::error_code;
// Plain, with TLS too: the session (tls_session.h) turns bytes into bytes beside it.
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Timer = asio::steady_timer::rebind_executor<Executor>::other;
template <typename T>
using Task = asio::awaitable<T, Executor>;

// Completes into `error` and throws nothing.
inline auto Into(IoError& error) {
  return asio::redirect_error(asio::use_awaitable_t<Executor>(), error);
}

// The event loop, and the way of answers into it. Shared with every open responder, so that a late
// one finds it closed and not gone.
class IoLoop final : public AnswerSink {
 public:
  explicit IoLoop(Threads& threads) : monitor_(threads.NewMonitor()) {}

  // Precondition: before the loop runs. Called on the io thread.
  void OnAnswer(std::function<void(Exchange, Answer)> on_answer) {
    on_answer_ = std::move(on_answer);
  }

  // From any thread. On the io thread the answer is there when this returns; from elsewhere all
  // that come before the io thread looks share one wake-up.
  void Deliver(Exchange exchange, Answer answer) override;

  // From here on answers are dropped. Precondition: the loop does not run any more.
  void Close();

  asio::io_context& context() { return context_; }

 private:
  struct Delivery {
    Exchange exchange;
    Answer answer;
  };
  void Drain();

  // One thread: no lock inside for what this thread posts to itself.
  asio::io_context context_{1};
  std::function<void(Exchange, Answer)> on_answer_;
  const std::unique_ptr<Monitor> monitor_;
  std::vector<Delivery> answers_ GUARDED_BY(*monitor_);
  bool closed_ GUARDED_BY(*monitor_) = false;
};

}  // namespace vmonce::http
