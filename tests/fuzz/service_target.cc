// A whole service, wired as in production, on a simulated host and a port of the loopback: any
// series of requests gets answers that the table of problems knows, none of them `internal`, and a
// request that was refused has not consumed its key.
//
// One line each: "METHOD TARGET KEY BODY" ("-" for no key; the body may be missing). With "wait "
// in front the answer is waited for. In a target, {vm} and {op} stand for the last ids that an
// answer told. The service lives as long as the program; every input has keys of its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/node.h"
#include "base/check.h"
#include "base/log.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "client/url.h"
#include "http/raw_client.h"
#include "model/idempotency.h"
#include "model/problem.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {
namespace {

constexpr int kMostLines = 24;

class Service {
 public:
  Service() {
    std::ofstream(dir_.File("vmlinuz")) << "no kernel";
    std::ofstream(dir_.File("vmonce.toml")) << fmt::format(
        "[server]\nlisten = \"127.0.0.1:0\"\n[state]\ndir = \"{0}/state\"\n"
        "[[host]]\nid = \"local\"\nuri = \"simulated:\"\nvms = 100000\ncpus = 65536\n"
        "memory_mib = 1000000000\ndisk_gib = 1000000000\nforward_ports = \"1024-65535\"\n"
        "[[image]]\nname = \"tiny\"\nkind = \"kernel\"\nkernel = \"{0}/vmlinuz\"\n"
        "[quota]\nvms = 1000000\ncpus = 1000000\nkeys = 1000000\n[auth]\nrate = 0\n",
        dir_.path());
    const auto config =
        app::ReadConfig(dir_.File("vmonce.toml"), {}, [](const char*) { return std::nullopt; });
    CHECK_MSG(config.has_value(), config ? "" : config.error().front().Format());
    auto opened = app::Node::Open(*config, {*clock_, *random_, *threads_, *logger_});
    CHECK_MSG(opened.has_value(), opened ? "" : opened.error().detail);
    node_ = std::move(*opened);
    CHECK(node_->Start().has_value());
    const std::string url = node_->Url();
    const std::size_t colon = url.rfind(':') + 1;
    std::from_chars(url.data() + colon, url.data() + url.size(), port_);
    // Bounded: a simulated host answers at once.
    for (int i = 0; i < 1000 && http::RawClient(port_).Ask("GET", "/readyz").status != 200; ++i) {
      threads_->SleepFor(Milliseconds(10), {});
    }
    CHECK(http::RawClient(port_).Ask("GET", "/readyz").status == 200);
    MakeToken();
  }
  ~Service() { node_->Stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::uint16_t port() const { return port_; }
  // An administrator's: an input that makes a token would lock out whoever has none.
  const std::string& token() const { return token_; }

 private:
  void MakeToken() {
    const std::string body = R"({"project":"default","role":"admin"})";
    http::RawClient client(port_);
    client.Send(
        fmt::format("POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n"
                    "Content-Type: application/json\r\nIdempotency-Key: t\r\n\r\n{}",
                    body.size(), body));
    const http::Response made = client.Receive();
    CHECK_MSG(made.status == 201, made.body);
    token_ = std::string(boost::json::parse(made.body).at("secret").as_string());
  }

  TempDir dir_;
  std::unique_ptr<Clock> clock_ = NewSystemClock();
  std::unique_ptr<Random> random_ = NewSystemRandom();
  std::unique_ptr<Threads> threads_ = NewSystemThreads();
  std::unique_ptr<Logger> logger_ = NewNullLogger();
  std::unique_ptr<app::Node> node_;
  std::uint16_t port_ = 0;
  std::string token_;
};

std::string_view TakeWord(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

void Replace(std::string& text, std::string_view what, const std::string& with) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), with);
}

class Conversation {
 public:
  Conversation(const Service& service, std::int64_t number)
      : service_(service), prefix_(fmt::format("c{}-", number)) {}

  void Send(std::string_view line) {
    constexpr std::string_view kWait = "wait ";
    const bool waits = line.starts_with(kWait);
    if (waits) line.remove_prefix(kWait.size());
    const std::string_view method = TakeWord(line);
    std::string target(TakeWord(line));
    Replace(target, "{vm}", vm_);
    Replace(target, "{op}", operation_);
    const std::string key = OwnKey(TakeWord(line));
    // An operator's word that a host is dead holds for all inputs to come.
    if (target.find("/dead") != std::string::npos) return;
    std::string headers = "Content-Type: application/json\r\n";
    if (!key.empty()) headers += fmt::format("Idempotency-Key: {}\r\n", key);
    if (waits) headers += "Prefer: wait=1\r\n";

    const bool was_known = IsKnown(key);
    const http::Response answer = Ask(fmt::format("{} {}", method, target), headers, line);
    CHECK_MSG(answer.status != 0, "no answer");
    if (answer.status < 400) {
      Remember(answer);
      return;
    }
    if (method != "HEAD") CheckRefusal(answer);
    // An answer that was waited for tells of an operation, which has the key of course.
    if (!waits) CHECK_MSG(was_known || !IsKnown(key), "a refused request consumed its key");
  }

 private:
  http::Response Ask(const std::string& what, const std::string& headers,
                     std::string_view body) const {
    http::RawClient client(service_.port());
    client.Send(
        fmt::format("{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{}"
                    "Content-Length: {}\r\n\r\n{}",
                    what, service_.token(), headers, body.size(), body));
    return client.Receive(what.starts_with("HEAD "));
  }

  // Inside the quotes, where there are some.
  std::string OwnKey(std::string_view key) const {
    if (key == "-" || key.empty()) return "";
    const std::size_t at = key.starts_with('"') ? 1 : 0;
    return std::string(key.substr(0, at)) + prefix_ + std::string(key.substr(at));
  }

  bool IsKnown(const std::string& key) const {
    const std::array<std::string_view, 1> lines = {key};
    const auto parsed = model::ParseKey(lines);
    if (!parsed || !parsed->has_value()) return false;
    const std::string quoted = client::PercentEncode(Quoted((*parsed)->value));
    const http::Response found = Ask("GET /v1/operations?idempotency_key=" + quoted, "", "");
    CHECK_MSG(found.status == 200, found.body);
    return !boost::json::parse(found.body).at("items").as_array().empty();
  }

  static void CheckRefusal(const http::Response& answer) {
    boost::system::error_code refused;
    const boost::json::value problem = boost::json::parse(answer.body, refused);
    CHECK_MSG(!refused && problem.is_object(), answer.body);
    const auto* code = problem.get_object().if_contains("code");
    CHECK_MSG(code != nullptr && code->is_string(), answer.body);
    CHECK_MSG(answer.status != 500, answer.body);
    for (const model::ProblemKind& kind : model::AllProblemKinds()) {
      if (kind.code == std::string_view(code->get_string())) {
        CHECK_MSG(kind.status == answer.status, answer.body);
      }
    }
  }

  void Remember(const http::Response& answer) {
    boost::system::error_code refused;
    const boost::json::value body = boost::json::parse(answer.body, refused);
    if (refused || !body.is_object()) return;
    const std::pair<const char*, std::string*> places[] = {
        {"/vm/id", &vm_}, {"/vms/0/id", &vm_}, {"/operation/id", &operation_}};
    for (const auto& [path, id] : places) {
      const auto* found = body.find_pointer(path, refused);
      if (found != nullptr && found->is_string()) *id = std::string(found->get_string());
    }
  }

  const Service& service_;
  const std::string prefix_;
  std::string vm_ = "01890a5d-ac96-774b-bcce-b302099a8057";
  std::string operation_ = vm_;
};

}  // namespace

void FuzzService(std::string_view input) {
  static const Service service;
  static std::int64_t number = 0;
  Conversation conversation(service, ++number);
  for (int line = 0; line < kMostLines && !input.empty(); ++line) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    conversation.Send(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
}

}  // namespace vmonce::fuzz
