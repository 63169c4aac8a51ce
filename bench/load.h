// An HTTP/1.1 client that costs little: one thread, epoll, keep-alive connections, one request at a
// time on each. Knows as much of HTTP as our server writes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace vmonce::bench {

struct LoadAnswer {
  int status = 0;
  std::string_view head;
  std::string_view body;
  Instant sent;
  Instant received;
};

class Load {
 public:
  // Connects to 127.0.0.1; ends the program when it cannot.
  Load(std::uint16_t port, int connections, Clock& clock);

  // Appends a whole request to what is empty, or answers false: there is no other.
  using Next = std::function<bool(std::string& request)>;
  using Take = std::function<void(const LoadAnswer& answer)>;
  // Sends on every free connection what `next` gives, until it gives no more and everything is
  // answered. A connection that breaks ends the program.
  void Run(const Next& next, const Take& take);

 private:
  struct Connection {
    UniqueFd fd;
    std::string output;
    std::size_t written = 0;
    std::string input;
    Instant sent{};
    bool is_waiting = false;
  };

  bool Begin(Connection& connection, const Next& next);
  void Write(Connection& connection);
  // True when a whole answer was read, and taken.
  bool Read(Connection& connection, const Take& take);

  Clock& clock_;
  UniqueFd epoll_;
  std::vector<Connection> connections_;
};

// GET and POST as Load sends them.
void AppendGet(std::string& request, std::string_view path);

}  // namespace vmonce::bench
