// config show, config check: what the service and this command line would work with, and who said
// so. Nothing is sent, nothing is changed.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/config.h"

namespace vmonce::app {
namespace {

struct ConfigFlags {
  std::string path;
  std::vector<std::string> overrides;
  bool has_origin = false;
};

using ReadOutcome = std::expected<Config, std::vector<ConfigMistake>>;

ReadOutcome Read(const Invocation& run, const ConfigFlags& flags) {
  return ReadConfig(flags.path.empty() ? std::nullopt : std::optional(flags.path), flags.overrides,
                    run.world.environment);
}

ExitCode ReportMistakes(const Invocation& run, const std::vector<ConfigMistake>& mistakes) {
  for (const ConfigMistake& mistake : mistakes) run.messages.Say(mistake.Format());
  return ExitCode::kUsage;
}

boost::json::value ItemOf(const ConfigValue& value) {
  return {{"name", value.name}, {"value", MaskSecret(value)}, {"origin", value.origin}};
}

ExitCode RunShow(const Invocation& run, const ConfigFlags& flags) {
  static constexpr Column kColumns[] = {{"NAME", "name"}, {"VALUE", "value"}, {"ORIGIN", "origin"}};
  std::vector<boost::json::value> items;
  for (const ConfigValue& value : run.globals.explanation) items.push_back(ItemOf(value));
  const ReadOutcome config = Read(run, flags);
  if (config) {
    for (const ConfigValue& value : config->explanation) items.push_back(ItemOf(value));
  }
  PrintItems(run.world.terminal, run.globals.format, items,
             std::span(kColumns).first(flags.has_origin ? 3 : 2));
  return config ? ExitCode::kDone : ReportMistakes(run, config.error());
}

boost::json::value JsonOf(const ConfigMistake& mistake) {
  return {{"file", mistake.file},
          {"line", mistake.line},
          {"column", mistake.column},
          {"text", mistake.text},
          {"fix", mistake.fix}};
}

ExitCode RunCheck(const Invocation& run, const ConfigFlags& flags) {
  const ReadOutcome config = Read(run, flags);
  boost::json::array mistakes;
  if (!config) {
    for (const ConfigMistake& mistake : config.error()) mistakes.push_back(JsonOf(mistake));
  }
  if (run.globals.format != OutputFormat::kTable && run.globals.format != OutputFormat::kName) {
    PrintOne(run.world.terminal, run.globals.format,
             boost::json::object{{"valid", config.has_value()}, {"mistakes", mistakes}});
  }
  if (!config) return ReportMistakes(run, config.error());
  run.messages.Say(fmt::format("the configuration is valid: hosts {}, images {}",
                               config->hosts.size(), config->images.size()));
  return ExitCode::kDone;
}

using Run = ExitCode (*)(const Invocation&, const ConfigFlags&);

CLI::App* AddOne(CLI::App& parent, ClientCommand& chosen, std::pair<const char*, const char*> words,
                 std::pair<std::shared_ptr<ConfigFlags>, Run> what) {
  auto* command = parent.add_subcommand(words.first, words.second);
  const auto& [flags, body] = what;
  command->add_option("--config,-c", flags->path, "The service's configuration file")
      ->type_name("FILE");
  command->add_option("--set", flags->overrides, "section.name=value, stronger than the file")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command->callback([&chosen, what] {
    chosen = [what](const Invocation& run) { return what.second(run, *what.first); };
  });
  return command;
}

}  // namespace

void AddConfig(CLI::App& app, ClientCommand& chosen) {
  auto* command = app.add_subcommand("config", "Show or check the configuration");
  command->require_subcommand(1);
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<ConfigFlags>();
  auto* show =
      AddOne(*command, chosen, {"show", "Every setting of this command line and of the service"},
             {flags, &RunShow});
  show->add_flag("--origin", flags->has_origin, "Show who said so");
  AddOne(*command, chosen, {"check", "Tell every mistake of the service's configuration"},
         {flags, &RunCheck});
}

}  // namespace vmonce::app
