// The door to the person or script at the other end: stdin, stdout, stderr.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace vmonce::app {

// Environment variables; empty ones count as unset.
using Environ = std::function<std::optional<std::string>(const char*)>;

struct TerminalTraits {
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool has_cursor = false;  // err_is_terminal, and TERM is not "dumb": a line can be redrawn.
  bool out_has_colour = false;
};

// NO_COLOR switches colour off, CLICOLOR_FORCE on, TERM=dumb off.
TerminalTraits TraitsOf(bool in, bool out, bool err, const Environ& environment);

class Terminal {
 public:
  virtual ~Terminal() = default;

  virtual const TerminalTraits& traits() const = 0;
  virtual void Out(std::string_view text) = 0;
  virtual void Err(std::string_view text) = 0;
  // Without its newline; nothing at the end of the input.
  virtual std::optional<std::string> ReadLine() = 0;
  // False once something could not be written to stdout (a full disk, a closed pipe).
  virtual bool IsOutWhole() const = 0;
};

std::unique_ptr<Terminal> NewSystemTerminal(const Environ& environment);

// What is said on stderr: lines that stay, and at most one live line that is redrawn in place.
// Where no line can be redrawn, live lines are dropped. `terminal` outlives it.
class Messages final {
 public:
  explicit Messages(Terminal& terminal) : terminal_(terminal) {}
  ~Messages() { EndLive(); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  bool HasLive() const { return terminal_.traits().has_cursor; }
  // One line, or several with newlines between. Control characters are made visible: a part of the
  // text may come from a guest.
  void Say(std::string_view text);
  void Live(std::string_view text);
  // Keeps what the live line shows as a line that stays.
  void KeepLive();
  void EndLive();

 private:
  Terminal& terminal_;
  std::string live_;
};

// Newlines and tabs stay, other control characters become '?'.
std::string Printable(std::string_view text);

}  // namespace vmonce::app
