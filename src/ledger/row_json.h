// The JSON columns. Members that hold their default are left out, and unknown ones are ignored, so
// that a later version may add some.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::ledger {

std::string ItemsToJson(const std::vector<model::Item>& items);
std::string FailureToJson(const model::Failure& failure);
std::string SpecToJson(const model::VmSpec& spec);
std::string LabelsToJson(const std::map<std::string, std::string>& labels);
// A VM's reserved forwards with the count of their moves.
std::string ForwardsToJson(const std::vector<model::Forward>& forwards, int moves);
std::string AddressesToJson(const std::vector<std::string>& addresses);

// std::nullopt when the text is not what the other direction writes.
std::optional<std::vector<model::Item>> ItemsFromJson(std::string_view text);
std::optional<model::Failure> FailureFromJson(std::string_view text);
std::optional<model::VmSpec> SpecFromJson(std::string_view text);
std::optional<std::map<std::string, std::string>> LabelsFromJson(std::string_view text);
struct ReservedForwards {
  std::vector<model::Forward> forwards;
  int moves = 0;
};
std::optional<ReservedForwards> ForwardsFromJson(std::string_view text);
std::optional<std::vector<std::string>> AddressesFromJson(std::string_view text);

}  // namespace vmonce::ledger
