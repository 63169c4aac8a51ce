// A person, a home and a server made up for tests of whole command lines.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "app/command_line.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "client/fake_transport.h"

namespace vmonce::app {

class FakeTerminal final : public Terminal {
 public:
  const TerminalTraits& traits() const override { return traits_now; }
  void Out(std::string_view text) override { out += text; }
  void Err(std::string_view text) override { err += text; }
  std::optional<std::string> ReadLine() override { return answer; }
  bool IsOutWhole() const override { return true; }

  TerminalTraits traits_now;
  std::string out, err;
  std::optional<std::string> answer;
};

class FakeWorld : public testing::Test {
 protected:
  using Answer = client::FakeTransport::Answer;

  FakeWorld() {
    environment_["XDG_STATE_HOME"] = home_.path();
    // Neither the files of whoever runs the tests nor those of the machine.
    WriteClientConfig("");
    facts_.state.is_usable = true;
    facts_.year = 2026;
    environment_["VMONCE_CLIENT_CONFIG"] = home_.File("client.toml");
    transport_.handler = [this](const client::HttpRequest& request) { return Serve(request); };
  }

  // Runs one command line as a process of its own would; returns its exit code.
  int Run(const std::vector<std::string>& arguments) {
    terminal_.out.clear();
    terminal_.err.clear();
    stop_ = std::stop_source();
    const Environ environment = [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
    const Parsed parsed = ParseCommandLine(arguments, terminal_, environment);
    if (const auto* ended = std::get_if<ExitCode>(&parsed)) return static_cast<int>(*ended);
    return static_cast<int>(
        RunClient(std::get<ParsedClient>(parsed),
                  World{transport_, clock_, random_, threads_, terminal_, environment,
                        stop_.get_token(), [this](const LookRequest& request) {
                          looks_.push_back(request);
                          return facts_;
                        }}));
  }

  void WriteClientConfig(std::string_view toml) {
    EXPECT_TRUE(WriteFileAtomically(home_.File("client.toml"), toml, 0600));
  }

  // What the server says to "METHOD /path?query"; each use of a list's last answer repeats it.
  void Expect(const std::string& route, std::vector<Answer> answers) {
    routes_[route] = std::deque<Answer>(answers.begin(), answers.end());
  }
  void ExpectJson(const std::string& route, int status, std::string body) {
    Expect(route, {client::FakeTransport::Json(status, std::move(body))});
  }

  std::vector<client::HttpRequest> Requests(std::string_view method) const {
    std::vector<client::HttpRequest> found;
    for (const auto& request : transport_.requests) {
      if (request.method == method) found.push_back(request);
    }
    return found;
  }

  std::vector<std::filesystem::path> IntentFiles() const {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(home_.File("vmonce/intents"), none)) {
      files.push_back(entry.path());
    }
    return files;
  }

  bool Said(std::string_view text) const { return terminal_.err.find(text) != std::string::npos; }
  bool Printed(std::string_view text) const {
    return terminal_.out.find(text) != std::string::npos;
  }

  TempDir home_;
  std::map<std::string, std::string> environment_;
  client::FakeClock clock_;
  client::FakeRandom random_;
  client::FakeThreads threads_{clock_};
  client::FakeTransport transport_;
  FakeTerminal terminal_;
  std::stop_source stop_;
  std::function<void(const client::HttpRequest&)> on_request_;
  DoctorFacts facts_;  // What doctor finds on this computer.
  std::vector<LookRequest> looks_;

 private:
  Answer Serve(const client::HttpRequest& request) {
    if (on_request_) on_request_(request);
    if (stop_.stop_requested()) return client::FakeTransport::Lost();
    const std::string route =
        request.method + " " + request.url.substr(std::string(kDefaultUrl).size());
    const auto found = routes_.find(route);
    if (found == routes_.end()) {
      ADD_FAILURE() << "not expected: " << route;
      return client::FakeTransport::Json(404, R"({"code":"route_not_found"})");
    }
    Answer answer = found->second.front();
    if (found->second.size() > 1) found->second.pop_front();
    return answer;
  }

  std::map<std::string, std::deque<Answer>> routes_;
};

// Bodies as the server writes them.
inline std::string OperationJson(std::string_view state, std::string_view phase,
                                 std::string_view step, std::string_view more = "") {
  return fmt::format(
      R"({{"id":"op-1","kind":"create","state":"{}","attempt":1,"stuck":false,)"
      R"("items":[{{"index":0,"vm":"vm-1","phase":"{}","step":0,"step_name":"{}","failures":0}}],)"
      R"("vms":["vm-1"]{}}})",
      state, phase, step, more);
}

inline std::string VmJson(std::string_view state, std::string_view name = "web",
                          std::string_view id = "vm-1") {
  return fmt::format(
      R"({{"id":"{}","name":"{}","state":"{}","image":"tiny","labels":{{}},"host":"local",)"
      R"("operation":"op-1","created_at":"2026-11-30T20:00:00.000Z"}})",
      id, name, state);
}

inline std::string CreatedJson(std::string_view operation, std::string_view vm,
                               std::string_view result = "created") {
  return fmt::format(R"({{"result":"{}","operation":{},"vm":{},"vms":[{}]}})", result, operation,
                     vm, vm);
}

}  // namespace vmonce::app
