#include "app/config_auth.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "model/auth_limits.h"
#include "model/limits.h"
#include "model/token.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

constexpr std::array<std::string_view, 2> kTokenPolicies = {"auto", "required"};

void ReadAmounts(ConfigTableReader& table, QuotaConfig& quota) {
  const IntegerRange range{0, limits::kQuotaMax};
  table.Integer("vms", range, quota.amounts.vms);
  table.Integer("cpus", range, quota.amounts.cpus);
  table.Integer("memory_mib", range, quota.amounts.memory_mib);
  table.Integer("disk_gib", range, quota.amounts.disk_gib);
  table.Integer("keys", range, quota.keys);
}

ProjectConfig ReadProject(const ConfigNode& node, const std::string& directory,
                          const QuotaConfig& others, ConfigFindings& findings) {
  ProjectConfig project;
  project.quota = others;
  const ConfigEntry* entry = FindEntry(node, "name");
  const std::string* text = entry == nullptr ? nullptr : TextOf(entry->node);
  ConfigTableReader table(&node, {"[[project]]", "project." + (text == nullptr ? "?" : *text)},
                          directory, findings);
  table.Require("name", "name = \"web\"");
  if (table.Text("name", project.name.value) && !model::IsProjectName(project.name.value)) {
    table.Mistake("name", fmt::format("\"{}\" is no name for a project", project.name.value),
                  "use 1 to 63 letters, digits, '-', '_' and '.'");
  }
  ReadAmounts(table, project.quota);
  table.Finish();
  return project;
}

}  // namespace

void ReadAuth(ConfigTableReader table, AuthConfig& auth) {
  table.Choice("tokens", kTokenPolicies, auth.tokens);
  table.Integer("rate", {0, limits::kTokenRateMax}, auth.rate);
  table.Integer("burst", {1, limits::kTokenRateMax}, auth.burst);
  table.Finish();
}

void ReadQuota(ConfigTableReader table, QuotaConfig& quota) {
  ReadAmounts(table, quota);
  table.Finish();
}

std::vector<ProjectConfig> ReadProjects(std::span<const ConfigNode* const> tables,
                                        const std::string& directory, const QuotaConfig& others,
                                        ConfigFindings& findings) {
  std::vector<ProjectConfig> projects;
  std::map<model::ProjectId, ConfigOrigin> first;
  for (const ConfigNode* const node : tables) {
    projects.push_back(ReadProject(*node, directory, others, findings));
    const auto [place, is_new] = first.try_emplace(projects.back().name, node->at);
    if (is_new) continue;
    findings.Add(node->at,
                 fmt::format("the project \"{}\" was given before{}", projects.back().name.value,
                             place->second.IsFile() ? fmt::format(" on line {}", place->second.line)
                                                    : std::string()),
                 "a project has one quota: remove one of them");
  }
  return projects;
}

}  // namespace vmonce::app
