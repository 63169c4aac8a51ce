#include "model/label.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/uuid.h"

namespace vmonce::model {
namespace {

constexpr std::string_view kPrefix = "vmonce-";
constexpr std::string_view kDiskSuffix = ".qcow2";
constexpr std::string_view kSeedSuffix = ".seed.iso";

bool Drop(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::int64_t NewestSequence(const Label& label) {
  return std::max(label.sequence, SequenceOf(label.fence));
}

std::string DomainName(const LedgerId& ledger, const VmId& vm) {
  CHECK_MSG(!ledger.value.empty(), "a name without a ledger id would be shared between ledgers");
  return fmt::format("{}{}-{}", kPrefix, ledger.value, ToString(vm));
}

std::string DiskName(const LedgerId& ledger, const VmId& vm) {
  return DomainName(ledger, vm).append(kDiskSuffix);
}

std::string SeedName(const LedgerId& ledger, const VmId& vm) {
  return DomainName(ledger, vm).append(kSeedSuffix);
}

std::optional<VmId> VmOfDomainName(const LedgerId& ledger, std::string_view name) {
  std::string_view rest = name;
  if (!Drop(rest, kPrefix) || !Drop(rest, ledger.value) || !Drop(rest, "-")) return std::nullopt;
  const std::optional<Uuid> uuid = ParseUuid(rest);
  if (!uuid) return std::nullopt;
  const VmId vm{*uuid};
  // ParseUuid takes either case; we only ever write lower case.
  if (DomainName(ledger, vm) != name) return std::nullopt;
  return vm;
}

std::optional<VmId> VmOfVolume(const LedgerId& ledger, std::string_view name) {
  for (const std::string_view suffix : {kDiskSuffix, kSeedSuffix}) {
    if (name.ends_with(suffix)) {
      return VmOfDomainName(ledger, name.substr(0, name.size() - suffix.size()));
    }
  }
  return std::nullopt;
}

std::string MacAddress(const VmId& vm) {
  const auto& bytes = vm.value.bytes;
  return fmt::format("52:54:00:{:02x}:{:02x}:{:02x}", bytes[13], bytes[14], bytes[15]);
}

}  // namespace vmonce::model
