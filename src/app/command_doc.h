// The command line as a table: what the help shows, as values. Completion and man pages are made
// of it, so that they cannot say anything else.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vmonce::app {

struct FlagDoc {
  std::vector<std::string> names;  // "-o", "--output": as typed.
  std::string value;  // "" for a switch; "FILE"; or the words it takes: "table|json|yaml".
  std::string text;
  bool is_required = false;

  // The words that it takes; none when any text will do.
  std::vector<std::string> Words() const;
};

struct ArgumentDoc {
  std::string name;  // "VM"
  std::string text;
  bool is_required = false;
};

struct CommandDoc {
  std::vector<std::string> path;  // Below the program: {"operations", "get"}; empty for itself.
  std::string text;
  std::vector<FlagDoc> flags;
  std::vector<ArgumentDoc> arguments;
  std::vector<CommandDoc> children;

  std::string Joined(std::string_view separator) const;  // Of the path.
};

// Of a program that has all its commands.
CommandDoc DescribeCommand(const CLI::App& app);

// Every command below, the parents before their children; `root` is not among them.
std::vector<const CommandDoc*> AllCommands(const CommandDoc& root);

}  // namespace vmonce::app
