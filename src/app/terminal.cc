#include "app/terminal.h"

#include <unistd.h>

#include <cerrno>

namespace vmonce::app {
namespace {

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

class SystemTerminal final : public Terminal {
 public:
  explicit SystemTerminal(const Environ& environment)
      : traits_(TraitsOf(isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1,
                         isatty(STDERR_FILENO) == 1, environment)) {}

  const TerminalTraits& traits() const override { return traits_; }
  void Out(std::string_view text) override {
    is_out_whole_ = WriteAll(STDOUT_FILENO, text) && is_out_whole_;
  }
  void Err(std::string_view text) override { (void)WriteAll(STDERR_FILENO, text); }
  bool IsOutWhole() const override { return is_out_whole_; }

  std::optional<std::string> ReadLine() override {
    std::string line;
    char c = 0;
    while (true) {
      const ssize_t got = read(STDIN_FILENO, &c, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return line.empty() ? std::nullopt : std::optional(line);
      if (c == '\n') return line;
      line += c;
    }
  }

 private:
  const TerminalTraits traits_;
  bool is_out_whole_ = true;
};

}  // namespace

TerminalTraits TraitsOf(bool in, bool out, bool err, const Environ& environment) {
  const bool is_dumb = environment("TERM").value_or("dumb") == "dumb";
  TerminalTraits traits{in, out, err, err && !is_dumb, out && !is_dumb};
  if (environment("CLICOLOR_FORCE").value_or("0") != "0") traits.out_has_colour = true;
  if (environment("NO_COLOR")) traits.out_has_colour = false;
  return traits;
}

std::unique_ptr<Terminal> NewSystemTerminal(const Environ& environment) {
  return std::make_unique<SystemTerminal>(environment);
}

void Messages::Say(std::string_view text) {
  if (!live_.empty()) terminal_.Err("\r\033[K");
  terminal_.Err(Printable(text) + "\n");
  if (!live_.empty()) terminal_.Err(live_);
}

void Messages::Live(std::string_view text) {
  if (!HasLive()) return;
  live_ = Printable(text);
  terminal_.Err("\r\033[K" + live_);
}

void Messages::KeepLive() {
  if (!live_.empty()) terminal_.Err("\n");
  live_.clear();
}

void Messages::EndLive() {
  if (!live_.empty()) terminal_.Err("\r\033[K");
  live_.clear();
}

std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_control = (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7f;
    out += is_control ? '?' : c;
  }
  return out;
}

}  // namespace vmonce::app
