// A client for tests that sends exactly the bytes it is told to. Every wait is bounded.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include "http/message.h"

namespace vmonce::http {

class RawClient final {
 public:
  static constexpr int kPatienceMs = 20'000;

  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int connected = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    EXPECT_EQ(connected, 0);
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // Ends with RST.
  void Reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    Close();
  }

  // False when the server does not take them any more.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!IsReady(POLLOUT, kPatienceMs)) return false;
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Status 0 when none came.
  Response Receive(bool is_head = false) {
    Response response;
    response.status = 0;
    std::size_t end = 0;
    while ((end = held_.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadMore(kPatienceMs)) return response;
    }
    const std::string head = held_.substr(0, end + 2);
    held_.erase(0, end + 4);
    std::from_chars(head.data() + 9, head.data() + 12, response.status);
    for (std::size_t begin = head.find("\r\n") + 2; begin < head.size();) {
      const std::size_t line_end = head.find("\r\n", begin);
      const std::string line = head.substr(begin, line_end - begin);
      const std::size_t colon = line.find(": ");
      response.headers.Add(line.substr(0, colon), line.substr(colon + 2));
      begin = line_end + 2;
    }
    const std::string_view length = response.headers.Find("content-length").value_or("0");
    std::size_t size = 0;
    std::from_chars(length.data(), length.data() + length.size(), size);
    while (!is_head && held_.size() < size && ReadMore(kPatienceMs)) {
    }
    if (is_head) return response;
    response.body = held_.substr(0, size);
    held_.erase(0, std::min(size, held_.size()));
    return response;
  }

  // Whether the server closes before anything more comes, in this time.
  bool IsClosed(int patience_ms = kPatienceMs) {
    if (!held_.empty()) return false;
    is_open_ = true;
    return !ReadMore(patience_ms) && !is_open_;
  }
  // Whether nothing comes for so long.
  bool IsSilent(int for_ms) { return held_.empty() && !IsReady(POLLIN, for_ms); }

  Response Ask(std::string_view method, std::string_view path, std::string_view body = "") {
    std::string bytes(method);
    bytes.append(" ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n");
    bytes.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
    bytes.append(body);
    if (!Send(bytes)) return Response{0, {}, {}};
    return Receive(method == "HEAD");
  }

 private:
  // A signal, as of a fuzzer's timer, begins the wait anew.
  bool IsReady(short events, int patience_ms) {
    pollfd ready{fd_, events, 0};
    int count = 0;
    do {
      count = ::poll(&ready, 1, patience_ms);
    } while (count < 0 && errno == EINTR);
    return count == 1;
  }

  bool ReadMore(int patience_ms) {
    if (!IsReady(POLLIN, patience_ms)) return false;
    char buffer[16384];
    const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
    if (count <= 0) is_open_ = false;
    if (count <= 0) return false;
    held_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int fd_;
  bool is_open_ = true;
  std::string held_;
};

}  // namespace vmonce::http
