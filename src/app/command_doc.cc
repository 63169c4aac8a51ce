#include "app/command_doc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vmonce::app {
namespace {

CommandDoc Describe(const CLI::App& app, std::vector<std::string> path) {
  CommandDoc doc;
  doc.text = app.get_description();
  for (const CLI::Option* option : app.get_options({})) {
    if (option->nonpositional()) {
      FlagDoc& flag = doc.flags.emplace_back();
      for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
      if (option->get_items_expected_max() > 0) flag.value = option->get_type_name();
      flag.text = option->get_description();
      flag.is_required = option->get_required();
    } else {
      doc.arguments.push_back(
          {option->get_name(true), option->get_description(), option->get_required()});
    }
  }
  for (const CLI::App* child : app.get_subcommands({})) {
    std::vector<std::string> below = path;
    below.push_back(child->get_name());
    doc.children.push_back(Describe(*child, std::move(below)));
  }
  doc.path = std::move(path);
  return doc;
}

void Gather(const CommandDoc& doc, std::vector<const CommandDoc*>& all) {
  for (const CommandDoc& child : doc.children) {
    all.push_back(&child);
    Gather(child, all);
  }
}

}  // namespace

std::vector<std::string> FlagDoc::Words() const {
  std::vector<std::string> words;
  if (!value.contains('|')) return words;
  for (std::string_view rest = value; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    words.emplace_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return words;
}

std::string CommandDoc::Joined(std::string_view separator) const {
  return fmt::format("{}", fmt::join(path, separator));
}

CommandDoc DescribeCommand(const CLI::App& app) { return Describe(app, {}); }

std::vector<const CommandDoc*> AllCommands(const CommandDoc& root) {
  std::vector<const CommandDoc*> all;
  Gather(root, all);
  return all;
}

}  // namespace vmonce::app
