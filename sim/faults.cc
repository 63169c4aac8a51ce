#include "sim/faults.h"

namespace vmonce::sim {
namespace {

struct Row {
  std::string_view name;
  // How often, at the places where it may happen: once in so many of them, as each world draws it
  // between the two.
  int often;
  int seldom;
};

constexpr std::array<Row, kFaultKinds> kRows{{
    {"crash", 25, 250},         {"pause", 60, 500},          {"standby", 30, 300},
    {"clock_jump", 100, 600},   {"commit_unknown", 12, 120}, {"commit_unknown_undone", 12, 120},
    {"ledger_down", 100, 800},  {"reply_lost", 5, 40},       {"applied_late", 5, 40},
    {"host_refuses", 2, 40},    {"host_hang", 8, 80},        {"host_down", 30, 200},
    {"host_reboot", 3, 12},     {"host_dead", 3, 12},        {"start_outlives_undefine", 3, 12},
    {"list_lag", 2, 10},        {"list_omits", 2, 10},       {"not_found_as_text", 5, 40},
    {"client_gone", 3, 20},     {"answer_lost", 3, 20},      {"other_body", 4, 20},
    {"flood", 4, 20},           {"delete_crosses", 2, 8},    {"patch_crosses", 2, 8},
    {"quota_edge", 1, 1},       {"capacity_edge", 1, 1},     {"stranger", 1, 1},
    {"removed_by_hand", 3, 12}, {"migrated", 3, 12},         {"repointed", 3, 12},
    {"two_uris", 1, 1},         {"older_ledger", 1, 1},      {"long_sleep", 1, 1},
}};

}  // namespace

std::string_view ToString(FaultKind kind) { return kRows[static_cast<std::size_t>(kind)].name; }

std::optional<FaultKind> ParseFaultKind(std::string_view text) {
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (kRows[i].name == text) return static_cast<FaultKind>(i);
  }
  return std::nullopt;
}

Faults Faults::Draw(FaultChoice choice, Chance& chance) {
  Faults faults;
  // In a swarm some worlds are nearly calm and some are storms.
  const std::int64_t share = chance.Between(1, 6);
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    // Drawn whatever the choice, so that a choice does not change the rest of a history.
    const bool is_chosen = chance.Between(1, 8) <= share;
    const auto rate = static_cast<int>(chance.Between(kRows[i].often, kRows[i].seldom));
    if (choice == FaultChoice::kNone) continue;
    if (choice == FaultChoice::kAll || is_chosen) faults.one_in_[i] = rate;
  }
  return faults;
}

}  // namespace vmonce::sim
