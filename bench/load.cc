#include "bench/load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include "base/check.h"

namespace vmonce::bench {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr int kEvents = 512;

UniqueFd ConnectTo(std::uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(fd.IsOpen());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_MSG(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
            std::strerror(errno));
  const int on = 1;
  CHECK(setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
  return fd;
}

// The bytes of the first whole answer in `input`; none when it is not all there.
std::size_t WholeAnswer(std::string_view input, std::size_t& head_bytes) {
  const std::size_t end = input.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  head_bytes = end + 4;
  static constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t at = input.substr(0, head_bytes).find(kLength);
  CHECK_MSG(at != std::string_view::npos, "an answer without Content-Length");
  std::size_t length = 0;
  const char* digits = input.data() + at + kLength.size();
  std::from_chars(digits, input.data() + head_bytes, length);
  return input.size() >= head_bytes + length ? head_bytes + length : 0;
}

int StatusOf(std::string_view head) {
  static constexpr std::string_view kVersion = "HTTP/1.1 ";
  CHECK_MSG(head.starts_with(kVersion), head);
  int status = 0;
  std::from_chars(head.data() + kVersion.size(), head.data() + head.size(), status);
  return status;
}

}  // namespace

Load::Load(std::uint16_t port, int connections, Clock& clock)
    : clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  CHECK(epoll_.IsOpen());
  connections_.resize(static_cast<std::size_t>(connections));
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].fd = ConnectTo(port);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connections_[i].fd.get(), &event) == 0);
  }
}

void Load::Run(const Next& next, const Take& take) {
  int waiting = 0;
  for (Connection& connection : connections_) waiting += Begin(connection, next) ? 1 : 0;
  std::array<epoll_event, kEvents> events{};
  while (waiting > 0) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEvents, -1);
    CHECK(count > 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      Connection& connection = connections_[events[static_cast<std::size_t>(i)].data.u64];
      if (!Read(connection, take)) continue;
      --waiting;
      waiting += Begin(connection, next) ? 1 : 0;
    }
  }
}

bool Load::Begin(Connection& connection, const Next& next) {
  connection.output.clear();
  connection.written = 0;
  if (!next(connection.output)) return false;
  connection.is_waiting = true;
  connection.sent = clock_.Monotonic();
  Write(connection);
  return true;
}

// A request is smaller than the socket's buffer, so a blocking write returns at once.
void Load::Write(Connection& connection) {
  while (connection.written < connection.output.size()) {
    const ssize_t count = send(connection.fd.get(), connection.output.data() + connection.written,
                               connection.output.size() - connection.written, MSG_NOSIGNAL);
    CHECK_MSG(count > 0, std::strerror(errno));
    connection.written += static_cast<std::size_t>(count);
  }
}

bool Load::Read(Connection& connection, const Take& take) {
  std::array<char, kReadBytes> buffer;
  const ssize_t count = recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  CHECK_MSG(count > 0, count == 0 ? "the server closed a connection" : std::strerror(errno));
  CHECK_MSG(connection.is_waiting, "an answer that nobody asked for");
  connection.input.append(buffer.data(), static_cast<std::size_t>(count));
  std::size_t head_bytes = 0;
  const std::size_t bytes = WholeAnswer(connection.input, head_bytes);
  if (bytes == 0) return false;
  connection.is_waiting = false;
  LoadAnswer answer;
  answer.head = std::string_view(connection.input).substr(0, head_bytes);
  answer.body = std::string_view(connection.input).substr(head_bytes, bytes - head_bytes);
  answer.status = StatusOf(answer.head);
  answer.sent = connection.sent;
  answer.received = clock_.Monotonic();
  take(answer);
  connection.input.erase(0, bytes);
  return true;
}

void AppendGet(std::string& request, std::string_view path) {
  fmt::format_to(std::back_inserter(request), "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
}

}  // namespace vmonce::bench
