#include "app/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vmonce::app {
namespace {

// The day on which the command line last changed its contract. A page made twice is the same.
constexpr const char* kDate = "2026-12-01";

// A backslash, a hyphen (which would become a dash) and a leading dot or quote mean something to
// roff.
std::string Text(std::string_view text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    is_line_start = c == '\n';
  }
  return out;
}

std::string Head(const std::string& title, const std::string& name, const std::string& text) {
  return fmt::format(
      ".TH {} 1 {} \"vmonce {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", title,
      kDate, VMONCE_VERSION, Text(name), Text(text));
}

std::string Synopsis(const CommandDoc& command) {
  std::string line = ".B vmonce";
  if (!command.path.empty()) line += " " + Text(command.Joined(" "));
  line += "\n";
  if (!command.flags.empty()) line += ".RI [ flags ]\n";
  for (const ArgumentDoc& argument : command.arguments) {
    line += argument.is_required ? fmt::format(".I {}\n", Text(argument.name))
                                 : fmt::format(".RI [ {} ]\n", Text(argument.name));
  }
  if (!command.children.empty()) line += ".I COMMAND\n";
  return line;
}

std::string Flags(const std::vector<FlagDoc>& flags) {
  std::string text;
  for (const FlagDoc& flag : flags) {
    std::string names;
    for (const std::string& name : flag.names) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", Text(name));
    }
    if (!flag.value.empty()) names += fmt::format(" \\fI{}\\fR", Text(flag.value));
    text += fmt::format(".TP\n{}\n{}\n", names, Text(flag.text));
  }
  return text;
}

std::string Arguments(const std::vector<ArgumentDoc>& arguments) {
  std::string text;
  for (const ArgumentDoc& argument : arguments) {
    text += fmt::format(".TP\n.I {}\n{}\n", Text(argument.name), Text(argument.text));
  }
  return text;
}

}  // namespace

std::string ManPage(const CommandDoc& root, const std::string& footer) {
  std::string page = Head("VMONCE", "vmonce", root.text) + Synopsis(root);
  page += ".SH DESCRIPTION\n" + Text(root.text) +
          ".\nA create is named by a key: however often it is sent, there is one machine.\n"
          ".SH COMMANDS\n";
  for (const CommandDoc& command : root.children) {
    page += fmt::format(".TP\n.BR vmonce\\-{} (1)\n{}\n", Text(command.path.back()),
                        Text(command.text));
  }
  page += ".SH OPTIONS\nEvery command takes these.\n" + Flags(root.flags);
  page += ".SH \"EXIT STATUS AND ENVIRONMENT\"\n.nf\n" + Text(footer) + "\n.fi\n";
  page +=
      ".SH FILES\n"
      ".TP\n.I ~/.config/vmonce/client.toml\nProfiles of the command line.\n"
      ".TP\n.I /etc/vmonce/client.toml\nThe same, for everybody on this computer.\n"
      ".TP\n.I /etc/vmonce/vmonce.toml\nConfiguration of the service.\n"
      ".TP\n.I ~/.local/state/vmonce/intents\nCreates whose end is not known yet.\n";
  return page;
}

std::string CommandManPage(const CommandDoc& command) {
  const std::string name = "vmonce-" + command.Joined("-");
  std::string page = Head(Text(name), name, command.text) + Synopsis(command);
  for (const CommandDoc& child : command.children) page += ".br\n" + Synopsis(child);
  page += ".SH DESCRIPTION\n" + Text(command.text) + ".\n" + Arguments(command.arguments);
  page += ".SH OPTIONS\n" + Flags(command.flags);
  for (const CommandDoc& child : command.children) {
    page += fmt::format(".SS vmonce {}\n{}.\n", Text(child.Joined(" ")), Text(child.text)) +
            Arguments(child.arguments) + Flags(child.flags);
  }
  return page + ".SH \"SEE ALSO\"\n.BR vmonce (1)\n";
}

std::string ManFileName(const CommandDoc& command) {
  return command.path.empty() ? "vmonce.1" : fmt::format("vmonce-{}.1", command.Joined("-"));
}

}  // namespace vmonce::app
