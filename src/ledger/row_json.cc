#include "ledger/row_json.h"

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "base/json_writer.h"

namespace vmonce::ledger {
namespace {

namespace json = boost::json;

// Of a column's values; more is taken from the heap.
constexpr std::size_t kColumnBytes = 4 * 1024;
// What most of them take as text.
constexpr std::size_t kItemBytes = 128;
constexpr std::size_t kSpecBytes = 512;
// Most machines have none.
constexpr const char* kNoLabels = "{}";

// Reads members of one object; notes when one is not of the expected kind.
class Members {
 public:
  explicit Members(const json::value& value) : object_(value.if_object()) {}

  bool IsGood() const { return object_ != nullptr && is_good_; }

  const json::value* Find(std::string_view name) const {
    return object_ == nullptr ? nullptr : object_->if_contains(name);
  }
  std::string Text(std::string_view name) {
    const json::value* value = Find(name);
    if (value == nullptr) return {};
    const json::string* text = value->if_string();
    is_good_ &= text != nullptr;
    return text == nullptr ? std::string() : std::string(text->data(), text->size());
  }
  std::int64_t Int(std::string_view name, std::int64_t absent) {
    const json::value* value = Find(name);
    if (value == nullptr) return absent;
    const std::int64_t* number = value->if_int64();
    is_good_ &= number != nullptr;
    return number == nullptr ? absent : *number;
  }
  int SmallInt(std::string_view name, int absent) {
    const std::int64_t number = Int(name, absent);
    is_good_ &= std::in_range<int>(number);
    return std::in_range<int>(number) ? static_cast<int>(number) : absent;
  }
  bool Bool(std::string_view name, bool absent) {
    const json::value* value = Find(name);
    if (value == nullptr) return absent;
    const bool* truth = value->if_bool();
    is_good_ &= truth != nullptr;
    return truth == nullptr ? absent : *truth;
  }
  std::vector<std::string> Texts(std::string_view name) {
    std::vector<std::string> texts;
    const json::value* value = Find(name);
    if (value == nullptr) return texts;
    const json::array* array = value->if_array();
    is_good_ &= array != nullptr;
    if (array == nullptr) return texts;
    for (const json::value& element : *array) {
      is_good_ &= element.is_string();
      if (element.is_string()) texts.emplace_back(element.get_string());
    }
    return texts;
  }

 private:
  const json::object* object_;
  bool is_good_ = true;
};

// Memory of a column's values, which goes as a whole.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  json::storage_ptr storage() { return &resource_; }

 private:
  std::array<unsigned char, kColumnBytes> memory_;
  json::monotonic_resource resource_{memory_.data(), memory_.size()};
};

// The value of a column's text.
class Parsed {
 public:
  explicit Parsed(std::string_view text) {
    boost::system::error_code error;
    // A cause of failure may quote a program that does not write UTF-8; the row must stay readable.
    json::parse_options options;
    options.allow_invalid_utf8 = true;
    json::value value = json::parse(text, error, scratch_.storage(), options);
    if (!error) value_.emplace(std::move(value));
  }
  explicit operator bool() const { return value_.has_value(); }
  const json::value& operator*() const { return *value_; }
  const json::value* operator->() const { return &*value_; }

 private:
  Scratch scratch_;
  std::optional<json::value> value_;
};

void WriteText(JsonWriter& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out.Member(name, text);
}

void WriteTexts(JsonWriter& out, const std::vector<std::string>& texts) {
  out.BeginArray();
  for (const std::string& text : texts) out.Value(text);
  out.EndArray();
}

void WriteFailure(JsonWriter& out, const model::Failure& failure) {
  out.BeginObject();
  out.Member("code", failure.code);
  out.Member("detail", failure.detail);
  if (failure.passing) out.Member("passing", true);
  out.EndObject();
}

std::optional<model::Failure> ReadFailure(const json::value& value) {
  Members members(value);
  model::Failure failure;
  failure.code = members.Text("code");
  failure.detail = members.Text("detail");
  failure.passing = members.Bool("passing", false);
  if (!members.IsGood()) return std::nullopt;
  return failure;
}

void WriteItem(JsonWriter& out, const model::Item& item) {
  out.BeginObject();
  out.Member("index", item.index);
  out.Member("subject", ToString(item.subject));
  if (item.phase != model::ItemPhase::kForward) out.Member("phase", ToString(item.phase));
  if (item.step != 0) out.Member("step", item.step);
  if (item.failures != 0) out.Member("failures", item.failures);
  if (item.blind_looks != 0) out.Member("blind_looks", item.blind_looks);
  if (!item.look_first) out.Member("look_first", false);
  if (item.not_before != Time{}) out.Member("not_before_ms", ToUnixMs(item.not_before));
  if (item.unsettled_until != Time{}) {
    out.Member("unsettled_until_ms", ToUnixMs(item.unsettled_until));
  }
  WriteText(out, "call_left_by", item.call_left_by);
  WriteText(out, "memo", item.memo);
  if (item.failure) {
    out.Name("failure");
    WriteFailure(out, *item.failure);
  }
  out.EndObject();
}

std::optional<model::Item> ReadItem(const json::value& value) {
  Members members(value);
  model::Item item;
  item.index = members.SmallInt("index", 0);
  const auto subject = ParseUuid(members.Text("subject"));
  const std::string phase_word = members.Find("phase") ? members.Text("phase") : "forward";
  const auto phase = model::ParseItemPhase(phase_word);
  if (!subject || !phase) return std::nullopt;
  item.subject = *subject;
  item.phase = *phase;
  item.step = members.SmallInt("step", 0);
  item.failures = members.SmallInt("failures", 0);
  item.blind_looks = members.SmallInt("blind_looks", 0);
  item.look_first = members.Bool("look_first", true);
  item.not_before = FromUnixMs(members.Int("not_before_ms", 0));
  item.unsettled_until = FromUnixMs(members.Int("unsettled_until_ms", 0));
  item.call_left_by = members.Text("call_left_by");
  item.memo = members.Text("memo");
  if (const json::value* failure = members.Find("failure")) {
    item.failure = ReadFailure(*failure);
    if (!item.failure) return std::nullopt;
  }
  if (!members.IsGood()) return std::nullopt;
  return item;
}

void WriteImage(JsonWriter& out, const model::Image& image) {
  out.BeginObject();
  WriteText(out, "id", image.id);
  out.Member("name", image.name);
  out.Member("kind", ToString(image.kind));
  WriteText(out, "disk_path", image.disk_path);
  WriteText(out, "disk_format", image.disk_format);
  WriteText(out, "kernel_path", image.kernel_path);
  WriteText(out, "initrd_path", image.initrd_path);
  WriteText(out, "cmdline", image.cmdline);
  if (!image.aliases.empty()) {
    out.Name("aliases");
    WriteTexts(out, image.aliases);
  }
  out.EndObject();
}

void WriteForwards(JsonWriter& out, const std::vector<model::Forward>& forwards) {
  out.BeginArray();
  for (const model::Forward& forward : forwards) {
    out.BeginObject();
    out.Member("guest_port", forward.guest_port);
    if (forward.protocol != model::Protocol::kTcp) {
      out.Member("protocol", ToString(forward.protocol));
    }
    if (forward.host_port != 0) out.Member("host_port", forward.host_port);
    WriteText(out, "host_address", forward.host_address);
    out.EndObject();
  }
  out.EndArray();
}

// Absent is none of them.
std::optional<std::vector<model::Forward>> ReadForwards(const json::value* value) {
  std::vector<model::Forward> forwards;
  if (value == nullptr) return forwards;
  const json::array* array = value->if_array();
  if (array == nullptr) return std::nullopt;
  for (const json::value& element : *array) {
    Members members(element);
    model::Forward forward;
    forward.guest_port = members.SmallInt("guest_port", 0);
    const std::string word = members.Find("protocol") ? members.Text("protocol") : "tcp";
    const auto protocol = model::ParseProtocol(word);
    forward.host_port = members.SmallInt("host_port", 0);
    forward.host_address = members.Text("host_address");
    if (!protocol || !members.IsGood()) return std::nullopt;
    forward.protocol = *protocol;
    forwards.push_back(std::move(forward));
  }
  return forwards;
}

std::optional<model::Image> ReadImage(const json::value& value) {
  Members members(value);
  const auto kind = model::ParseImageKind(members.Text("kind"));
  if (!kind) return std::nullopt;
  model::Image image;
  image.id = members.Text("id");
  image.name = members.Text("name");
  image.kind = *kind;
  image.disk_path = members.Text("disk_path");
  image.disk_format = members.Text("disk_format");
  image.kernel_path = members.Text("kernel_path");
  image.initrd_path = members.Text("initrd_path");
  image.cmdline = members.Text("cmdline");
  image.aliases = members.Texts("aliases");
  if (!members.IsGood()) return std::nullopt;
  return image;
}

}  // namespace

std::string ItemsToJson(const std::vector<model::Item>& items) {
  std::string text;
  text.reserve(items.size() * kItemBytes);
  JsonWriter out(text);
  out.BeginArray();
  for (const model::Item& item : items) WriteItem(out, item);
  out.EndArray();
  return text;
}

std::string FailureToJson(const model::Failure& failure) {
  std::string text;
  JsonWriter out(text);
  WriteFailure(out, failure);
  return text;
}

std::string SpecToJson(const model::VmSpec& spec) {
  std::string text;
  text.reserve(kSpecBytes);
  JsonWriter out(text);
  out.BeginObject();
  out.Name("image");
  WriteImage(out, spec.image);
  out.Member("cpus", spec.cpus);
  out.Member("memory_mib", spec.memory_mib);
  out.Member("disk_gib", spec.disk_gib);
  WriteText(out, "hostname", spec.hostname);
  if (!spec.ssh_keys.empty()) {
    out.Name("ssh_keys");
    WriteTexts(out, spec.ssh_keys);
  }
  out.Member("network", spec.network);
  if (!spec.forwards.empty()) {
    out.Name("forward");
    WriteForwards(out, spec.forwards);
  }
  out.EndObject();
  return text;
}

std::string ForwardsToJson(const std::vector<model::Forward>& forwards, int moves) {
  std::string text;
  JsonWriter out(text);
  out.BeginObject();
  out.Name("forwards");
  WriteForwards(out, forwards);
  if (moves != 0) out.Member("moves", moves);
  out.EndObject();
  return text;
}

std::string AddressesToJson(const std::vector<std::string>& addresses) {
  std::string text;
  JsonWriter out(text);
  WriteTexts(out, addresses);
  return text;
}

std::string LabelsToJson(const std::map<std::string, std::string>& labels) {
  if (labels.empty()) return kNoLabels;
  std::string text;
  JsonWriter out(text);
  out.BeginObject();
  for (const auto& [name, value] : labels) out.Member(name, value);
  out.EndObject();
  return text;
}

std::optional<std::vector<model::Item>> ItemsFromJson(std::string_view text) {
  const Parsed value(text);
  const json::array* array = value ? value->if_array() : nullptr;
  if (array == nullptr) return std::nullopt;
  std::vector<model::Item> items;
  items.reserve(array->size());
  for (const json::value& element : *array) {
    auto item = ReadItem(element);
    if (!item) return std::nullopt;
    items.push_back(std::move(*item));
  }
  return items;
}

std::optional<model::Failure> FailureFromJson(std::string_view text) {
  const Parsed value(text);
  return value ? ReadFailure(*value) : std::nullopt;
}

std::optional<model::VmSpec> SpecFromJson(std::string_view text) {
  const Parsed value(text);
  if (!value) return std::nullopt;
  Members members(*value);
  const json::value* image_value = members.Find("image");
  auto image = image_value ? ReadImage(*image_value) : std::nullopt;
  if (!image) return std::nullopt;
  model::VmSpec spec;
  spec.image = std::move(*image);
  spec.cpus = members.SmallInt("cpus", 0);
  spec.memory_mib = members.SmallInt("memory_mib", 0);
  spec.disk_gib = members.SmallInt("disk_gib", 0);
  spec.hostname = members.Text("hostname");
  spec.ssh_keys = members.Texts("ssh_keys");
  spec.network = members.Text("network");
  auto forwards = ReadForwards(members.Find("forward"));
  if (!members.IsGood() || !forwards) return std::nullopt;
  spec.forwards = std::move(*forwards);
  return spec;
}

std::optional<ReservedForwards> ForwardsFromJson(std::string_view text) {
  const Parsed value(text);
  if (!value) return std::nullopt;
  Members members(*value);
  auto forwards = ReadForwards(members.Find("forwards"));
  const int moves = members.SmallInt("moves", 0);
  if (!members.IsGood() || !forwards) return std::nullopt;
  return ReservedForwards{std::move(*forwards), moves};
}

std::optional<std::vector<std::string>> AddressesFromJson(std::string_view text) {
  const Parsed value(text);
  const json::array* array = value ? value->if_array() : nullptr;
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> addresses;
  for (const json::value& element : *array) {
    if (!element.is_string()) return std::nullopt;
    addresses.emplace_back(element.get_string());
  }
  return addresses;
}

std::optional<std::map<std::string, std::string>> LabelsFromJson(std::string_view text) {
  if (text == kNoLabels) return std::map<std::string, std::string>();
  const Parsed value(text);
  const json::object* object = value ? value->if_object() : nullptr;
  if (object == nullptr) return std::nullopt;
  std::map<std::string, std::string> labels;
  for (const auto& [name, label] : *object) {
    if (!label.is_string()) return std::nullopt;
    labels.emplace(name, label.get_string());
  }
  return labels;
}

}  // namespace vmonce::ledger
