#include "app/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vmonce::app {
namespace {

// What names a thing of the server: the command that lists them, one a line.
std::string_view ListerOf(std::string_view what) {
  if (what == "VM" || what == "TARGET") return "list";
  if (what == "IMAGE") return "images";
  if (what == "HOST") return "hosts";
  if (what == "OPERATION") return "operations list";
  return "";
}

// The shell words that complete a value: literal words, or a call of _vmonce_names.
std::string WordsOf(const std::vector<std::string>& words, std::string_view what) {
  if (!words.empty()) return fmt::format("{}", fmt::join(words, " "));
  const std::string_view lister = ListerOf(what);
  return lister.empty() ? "" : fmt::format("$(_vmonce_names {})", lister);
}

bool IsFile(std::string_view what) { return what == "FILE" || what == "DIR"; }

// Single quotes, for any shell.
std::string Quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// "operations/get": how the scripts recognise that a word goes one command deeper.
std::string Steps(const CommandDoc& root) {
  std::vector<std::string> steps;
  for (const CommandDoc* command : AllCommands(root)) {
    std::string parent;
    for (std::size_t i = 0; i + 1 < command->path.size(); ++i) {
      parent += (i == 0 ? "" : " ") + command->path[i];
    }
    steps.push_back(fmt::format("{}", Quote(parent + "/" + command->path.back())));
  }
  return fmt::format("{}", fmt::join(steps, "|"));
}

// Bash and zsh: one branch a flag that takes a value, "COMMAND:FLAG". The program's own flags count
// for every command.
std::string ValueBranches(const CommandDoc& root, std::string_view files, std::string_view words) {
  std::string text;
  const auto add = [&](const CommandDoc& command, const std::string& prefix) {
    for (const FlagDoc& flag : command.flags) {
      if (flag.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) patterns.push_back(prefix + name);
      const std::string values = WordsOf(flag.Words(), flag.value);
      std::string action = "return";
      if (IsFile(flag.value)) action = fmt::format("{}; return", files);
      if (!values.empty()) action = fmt::format("{} {}; return", words, values);
      text += fmt::format("    {}) {} ;;\n", fmt::join(patterns, "|"), action);
    }
  };
  for (const CommandDoc* command : AllCommands(root)) {
    add(*command, Quote(command->Joined(" ")) + ":");
  }
  add(root, "*:");
  return text;
}

std::string FlagNames(const CommandDoc& command) {
  std::vector<std::string> names;
  for (const FlagDoc& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string BashWords(const CommandDoc& command) {
  std::vector<std::string> words;
  for (const CommandDoc& child : command.children) words.push_back(child.path.back());
  for (const ArgumentDoc& argument : command.arguments) {
    const FlagDoc as_flag{{}, argument.name, ""};
    if (std::string more = WordsOf(as_flag.Words(), argument.name); !more.empty()) {
      words.push_back(std::move(more));
    }
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// Zsh's _describe: 'word:text', with colons of the word or the text escaped.
std::string ZshItem(std::string_view word, std::string_view text) {
  std::string item;
  for (const char c : word) item += c == ':' ? std::string("\\:") : std::string(1, c);
  item += ':';
  for (const char c : text) item += c == ':' ? std::string("\\:") : std::string(1, c);
  return Quote(item);
}

std::string ZshFlags(const CommandDoc& command) {
  std::string items;
  for (const FlagDoc& flag : command.flags) {
    for (const std::string& name : flag.names) items += " " + ZshItem(name, flag.text);
  }
  return items;
}

std::string ZshWords(const CommandDoc& command) {
  std::string items;
  for (const CommandDoc& child : command.children) {
    items += " " + ZshItem(child.path.back(), child.text);
  }
  const std::string more = BashWords({{}, "", {}, command.arguments, {}});
  return (items.empty() ? std::string()
                        : fmt::format("items=({}); _describe command items; ", items)) +
         (more.empty() ? std::string() : fmt::format("compadd -- {}; ", more));
}

// The condition under which a command's own words are offered.
std::string FishCondition(const CommandDoc& command) {
  std::string condition;
  for (const std::string& word : command.path) {
    condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
  }
  return condition.empty() ? "__fish_use_subcommand" : condition;
}

std::string FishValue(std::string_view what, const std::vector<std::string>& words) {
  if (!words.empty()) return " -x -a " + Quote(fmt::format("{}", fmt::join(words, " ")));
  const std::string_view lister = ListerOf(what);
  if (!lister.empty()) return " -x -a " + Quote(fmt::format("(__vmonce_names {})", lister));
  return IsFile(what) ? " -r -F" : " -x";
}

std::string FishFlag(const FlagDoc& flag, std::string_view condition) {
  std::string line = "complete -c vmonce";
  if (!condition.empty()) line += " -n " + Quote(condition);
  for (const std::string& name : flag.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!flag.value.empty()) line += FishValue(flag.value, flag.Words());
  return line + " -d " + Quote(flag.text) + "\n";
}

}  // namespace

std::string BashCompletion(const CommandDoc& root) {
  std::string text =
      fmt::format(R"(# bash completion for vmonce, made by `vmonce completion bash`
_vmonce_names() {{
  vmonce "$@" -o name --timeout 2s 2>/dev/null
}}
_vmonce_words() {{
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}}
_vmonce_files() {{
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}}
_vmonce() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} cmd= i
  COMPREPLY=()
  if [ "$prev" = = ]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  if [ "$cur" = = ]; then cur=; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$cmd/${{COMP_WORDS[i]}}" in
    {}) cmd="${{cmd:+$cmd }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$cmd:$prev" in
{}  esac
  case "$cmd" in
)",
                  Steps(root), ValueBranches(root, "_vmonce_files", "_vmonce_words"));
  const std::string everywhere = FlagNames(root);
  const auto branch = [&text, &everywhere](const CommandDoc& command) {
    const std::string own = command.path.empty() ? "" : FlagNames(command);
    text += fmt::format(
        "    {})\n      if [[ $cur == -* ]]; then _vmonce_words {} {}; else _vmonce_words {}; "
        "fi ;;\n",
        Quote(command.Joined(" ")), own, everywhere, BashWords(command));
  };
  branch(root);
  for (const CommandDoc* command : AllCommands(root)) branch(*command);
  return text + "  esac\n}\ncomplete -F _vmonce vmonce\n";
}

std::string ZshCompletion(const CommandDoc& root) {
  std::string text = fmt::format(R"(#compdef vmonce
# zsh completion for vmonce, made by `vmonce completion zsh`
_vmonce_names() {{
  vmonce "$@" -o name --timeout 2s 2>/dev/null
}}
_vmonce() {{
  local cur=${{words[CURRENT]}} prev=${{words[CURRENT-1]}} cmd= i
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    case "$cmd/${{words[i]}}" in
    {}) cmd="${{cmd:+$cmd }}${{words[i]}}" ;;
    esac
  done
  case "$cmd:$prev" in
{}  esac
  case "$cmd" in
)",
                                 Steps(root), ValueBranches(root, "_files", "compadd --"));
  const std::string everywhere = ZshFlags(root);
  const auto branch = [&text, &everywhere](const CommandDoc& command) {
    const std::string own = command.path.empty() ? "" : ZshFlags(command);
    text += fmt::format(
        "    {})\n      if [[ $cur == -* ]]; then\n        items=({}{})\n        _describe -o flag "
        "items\n      else\n        {}:\n      fi ;;\n",
        Quote(command.Joined(" ")), own, everywhere, ZshWords(command));
  };
  branch(root);
  for (const CommandDoc* command : AllCommands(root)) branch(*command);
  return text +
         "  esac\n}\nif [ \"$funcstack[1]\" = _vmonce ]; then\n  _vmonce \"$@\"\nelse\n  "
         "compdef _vmonce vmonce\nfi\n";
}

std::string FishCompletion(const CommandDoc& root) {
  std::string text =
      "# fish completion for vmonce, made by `vmonce completion fish`\n"
      "function __vmonce_names\n  vmonce $argv -o name --timeout 2s 2>/dev/null\nend\n"
      "complete -c vmonce -f\n";
  for (const FlagDoc& flag : root.flags) text += FishFlag(flag, "");
  for (const CommandDoc* command : AllCommands(root)) {
    CommandDoc parent;
    parent.path.assign(command->path.begin(), command->path.end() - 1);
    text += fmt::format("complete -c vmonce -n {} -a {} -d {}\n", Quote(FishCondition(parent)),
                        command->path.back(), Quote(command->text));
    const std::string condition = FishCondition(*command);
    for (const FlagDoc& flag : command->flags) text += FishFlag(flag, condition);
    for (const ArgumentDoc& argument : command->arguments) {
      const FlagDoc as_flag{{}, argument.name, ""};
      const std::string values = FishValue(argument.name, as_flag.Words());
      text += fmt::format("complete -c vmonce -n {}{}\n", Quote(condition), values);
    }
  }
  return text;
}

}  // namespace vmonce::app
