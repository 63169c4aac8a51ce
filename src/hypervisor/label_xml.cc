#include "hypervisor/label_xml.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/sha256.h"
#include "hypervisor/xml_text.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::size_t kLedgerIdBytes = 12;

bool OriginFits(const model::Origin& origin) {
  return FitsInXml(origin.name) && FitsInXml(origin.face) && FitsInXml(origin.image_id) &&
         FitsInXml(origin.image) && FitsInXml(origin.disk_path) && FitsInXml(origin.disk_format);
}

std::string OriginAttributes(const model::Origin& origin) {
  return fmt::format(
      " name='{}' count='{}' desired='{}' restart='{}' face='{}' fingerprint_version='{}' "
      "disk_gib='{}' image_id='{}' image='{}' disk_path='{}' disk_format='{}'",
      EscapeXml(origin.name), origin.count, ToString(origin.desired), ToString(origin.restart),
      EscapeXml(origin.face), origin.fingerprint_version, origin.disk_gib,
      EscapeXml(origin.image_id), EscapeXml(origin.image), EscapeXml(origin.disk_path),
      EscapeXml(origin.disk_format));
}

std::optional<std::int64_t> ParseNumber(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

std::optional<int> ParseSmallNumber(const std::optional<std::string>& text) {
  const auto number = ParseNumber(text);
  if (!number || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

bool IsLedgerId(std::string_view text) {
  return text.size() == kLedgerIdBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<model::Origin> ParseOrigin(const xmlNode* element) {
  const auto text = [element](const char* name) {
    return XmlAttribute(element, name).value_or("");
  };
  const auto count = ParseSmallNumber(XmlAttribute(element, "count"));
  const auto version = ParseSmallNumber(XmlAttribute(element, "fingerprint_version"));
  const auto disk_gib = ParseSmallNumber(XmlAttribute(element, "disk_gib"));
  const auto desired = model::ParseDesired(text("desired"));
  const auto restart = model::ParseRestartPolicy(text("restart"));
  if (!count || *count < 1 || !version || !disk_gib || !desired || !restart) return std::nullopt;
  return model::Origin{.name = text("name"),
                       .count = *count,
                       .desired = *desired,
                       .restart = *restart,
                       .face = text("face"),
                       .fingerprint_version = *version,
                       .disk_gib = *disk_gib,
                       .image_id = text("image_id"),
                       .image = text("image"),
                       .disk_path = text("disk_path"),
                       .disk_format = text("disk_format")};
}

std::optional<model::Label> ParseLabel(const xmlNode* element) {
  const auto ledger = XmlAttribute(element, "ledger");
  const auto host = XmlAttribute(element, "host");
  const auto project = XmlAttribute(element, "project");
  const auto key_hash = XmlAttribute(element, "key_hash");
  const auto fingerprint = XmlAttribute(element, "fingerprint");
  const auto operation = ParseUuid(XmlAttribute(element, "operation").value_or(""));
  const auto index = ParseNumber(XmlAttribute(element, "index"));
  const auto fence = ParseNumber(XmlAttribute(element, "fence"));
  const auto sequence = ParseNumber(XmlAttribute(element, "sequence"));
  if (!ledger || !host || !project || !key_hash || !fingerprint || !operation) return std::nullopt;
  if (!index || *index > std::numeric_limits<int>::max() || !fence || !sequence) {
    return std::nullopt;
  }
  if (!IsLedgerId(*ledger) || host->empty() || project->empty()) return std::nullopt;
  if (!key_hash->empty() && !ParseDigest(*key_hash)) return std::nullopt;
  if (!ParseDigest(*fingerprint)) return std::nullopt;
  return model::Label{.ledger = {*ledger},
                      .host = {*host},
                      .project = {*project},
                      .key_hash = *key_hash,
                      .fingerprint = *fingerprint,
                      .operation = {*operation},
                      .index = static_cast<int>(*index),
                      .fence = {*fence},
                      .sequence = *sequence,
                      .origin = ParseOrigin(element)};
}

bool IsLabel(const xmlNode* node) {
  const auto text = [](const xmlChar* value) {
    return std::string_view(reinterpret_cast<const char*>(value));
  };
  return node->type == XML_ELEMENT_NODE && node->ns != nullptr && node->ns->href != nullptr &&
         text(node->ns->href) == model::kLabelNamespace && text(node->name) == "label";
}

}  // namespace

bool LabelFits(const model::Label& label) {
  return FitsInXml(label.ledger.value) && FitsInXml(label.host.value) &&
         FitsInXml(label.project.value) && FitsInXml(label.key_hash) &&
         FitsInXml(label.fingerprint) && (!label.origin || OriginFits(*label.origin));
}

std::string LabelAttributes(const model::Label& label) {
  std::string attributes = fmt::format(
      "ledger='{}' host='{}' project='{}' key_hash='{}' fingerprint='{}' operation='{}' "
      "index='{}' fence='{}' sequence='{}'",
      EscapeXml(label.ledger.value), EscapeXml(label.host.value), EscapeXml(label.project.value),
      EscapeXml(label.key_hash), EscapeXml(label.fingerprint), ToString(label.operation),
      label.index, label.fence.value, label.sequence);
  if (label.origin) attributes += OriginAttributes(*label.origin);
  return attributes;
}

Result<std::string> BuildLabelXml(const model::Label& label) {
  if (!LabelFits(label)) {
    return Fail(ErrorCode::kRefused, "a text of the label has control characters or is not UTF-8");
  }
  return fmt::format("<label {}/>", LabelAttributes(label));
}

std::optional<model::Label> FindLabel(const xmlNode* metadata) {
  if (metadata == nullptr) return std::nullopt;
  const xmlNode* found = nullptr;
  for (const xmlNode* node = metadata->children; node != nullptr; node = node->next) {
    if (!IsLabel(node)) continue;
    if (found != nullptr) return std::nullopt;  // Two: whom would one believe?
    found = node;
  }
  return found == nullptr ? std::nullopt : ParseLabel(found);
}

}  // namespace vmonce::hypervisor
