// What a face writes: a handler gets a request and a responder, and may answer at once, later, and
// from any thread. Waiting costs no thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "http/answer.h"

namespace vmonce::http {

// Names one request of one connection, of one server.
struct Exchange {
  std::uint64_t connection = 0;
  std::uint64_t request = 0;
};

// Takes answers to where their connections live. Thread-safe; a server implements it.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // Drops the answer silently when the client or the server is gone.
  virtual void Deliver(Exchange exchange, Answer answer) = 0;
};

// The promise of one answer. Copies share it (so that it fits into std::function): exactly one of
// them is called, exactly once, from any thread. When the last one goes without having been called,
// the client gets 500 `internal`: it never hangs. It may outlive the server.
class Responder {
 public:
  Responder(std::shared_ptr<AnswerSink> sink, Exchange exchange);

  // Never blocks for longer than a short lock. If the client is gone nothing happens; work is not
  // cancelled by that.
  void operator()(Answer answer) const;

 private:
  struct Promise {
    Promise(std::shared_ptr<AnswerSink> s, Exchange e) : sink(std::move(s)), exchange(e) {}
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    ~Promise();

    // Shared with the server and every other open promise: whoever goes last frees it.
    const std::shared_ptr<AnswerSink> sink;
    const Exchange exchange;
    std::atomic<bool> answered = false;
  };
  // Shared by the copies of this responder.
  std::shared_ptr<Promise> promise_;
};

using Handler = std::function<void(Request, Responder)>;

enum class HandlerMode {
  // On the io thread: must not block, not even on a disk. The whole server waits while it runs.
  kInline,
  // On the bounded pool: plain blocking code. When the pool's queue is full the client gets 503
  // `overloaded`.
  kBlocking,
};

}  // namespace vmonce::http
