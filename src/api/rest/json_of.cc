#include "api/rest/json_of.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/rfc3339.h"
#include "model/restart.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;

// What most of them take.
constexpr std::size_t kVmBytes = 1280;
constexpr std::size_t kOperationBytes = 768;

void AddTime(json::object& object, std::string_view name, const std::optional<Time>& time) {
  if (time) object[name] = FormatRfc3339(*time);
}

void WriteTime(JsonWriter& out, std::string_view name, const std::optional<Time>& time) {
  if (time) out.Member(name, FormatRfc3339(*time));
}

void WriteFailure(JsonWriter& out, const std::optional<model::Failure>& failure) {
  if (!failure) return;
  out.Name("failure");
  out.BeginObject();
  out.Member("code", failure->code);
  out.Member("detail", failure->detail);
  out.Member("retryable", failure->passing);
  out.EndObject();
}

// Null stands for what is not known.
void WriteOrNull(JsonWriter& out, std::string_view name, std::string_view text, bool is_known) {
  out.Name(name);
  if (is_known) {
    out.Value(text);
  } else {
    out.Null();
  }
}

void WriteItem(JsonWriter& out, const model::Operation& operation, const model::Item& item,
               const StepName& step_name) {
  out.BeginObject();
  out.Member("index", item.index);
  out.Member("vm", ToString(item.subject));
  out.Member("phase", ToString(item.phase));
  out.Member("step", item.step);
  out.Member("step_name", item.step < 0 ? std::string() : step_name(operation.kind, item.step));
  out.Member("failures", item.failures);
  WriteFailure(out, item.failure);
  out.EndObject();
}

json::object EntryJson(const model::TimelineEntry& entry) {
  json::object object;
  object["at"] = FormatRfc3339(entry.at);
  object["replica"] = entry.replica;
  object["attempt"] = entry.attempt;
  object["index"] = entry.index;
  object["event"] = entry.event;
  object["detail"] = entry.detail;
  return object;
}

// All that were asked for; where the host listens is null while nothing is reserved.
void WriteForwards(JsonWriter& out, const model::Vm& vm) {
  out.BeginArray();
  for (std::size_t i = 0; i < vm.spec.forwards.size(); ++i) {
    const model::Forward& asked = vm.spec.forwards[i];
    const bool is_reserved = i < vm.forwards.size();
    out.BeginObject();
    out.Member("guest_port", asked.guest_port);
    out.Member("protocol", ToString(asked.protocol));
    WriteOrNull(out, "host_address", is_reserved ? vm.forwards[i].host_address : "", is_reserved);
    out.Name("host_port");
    if (is_reserved) {
      out.Value(vm.forwards[i].host_port);
    } else {
      out.Null();
    }
    out.EndObject();
  }
  out.EndArray();
}

// In two halves: what was asked, and what became of it.
void WriteSpec(JsonWriter& out, const model::Vm& vm) {
  out.Member("image", vm.spec.image.name);
  out.Member("cpus", vm.spec.cpus);
  out.Member("memory_mib", vm.spec.memory_mib);
  out.Member("disk_gib", vm.spec.disk_gib);
  out.Member("hostname", vm.spec.hostname);
  out.Member("network", vm.spec.network);
  out.Member("mac", vm.mac);
  WriteOrNull(out, "host", vm.host ? vm.host->value : "", vm.host.has_value());
  out.Name("forwards");
  WriteForwards(out, vm);
  out.Name("addresses");
  out.BeginArray();
  for (const std::string& address : vm.addresses) out.Value(address);
  out.EndArray();
  out.Name("labels");
  out.BeginObject();
  for (const auto& [key, value] : vm.labels) out.Member(key, value);
  out.EndObject();
}

void ReplaceAll(std::string& text, const std::string& from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string VmUrl(const model::VmId& id) { return "/v1/vms/" + ToString(id); }
std::string OperationUrl(const model::OperationId& id) { return "/v1/operations/" + ToString(id); }

std::string TextOf(const model::Vm& vm) {
  std::string text;
  text.reserve(kVmBytes);
  JsonWriter out(text);
  out.BeginObject();
  out.Member("id", ToString(vm.id));
  out.Member("name", vm.name);
  out.Member("state", ToString(vm.state));
  out.Member("desired", ToString(vm.desired));
  out.Member("observed", ToString(vm.observed));
  WriteOrNull(out, "stopped_by", ToString(vm.stopped_by), vm.stopped_by != model::StopCause::kNone);
  out.Member("restart", ToString(vm.restart));
  out.Member("restarts", vm.restarts);
  out.Member("stuck", IsRestartStuck(vm));
  WriteSpec(out, vm);
  out.Member("operation", ToString(vm.operation));
  out.Member("idempotency_key_prefix", vm.key_prefix);
  out.Member("index", vm.index);
  out.Member("version", vm.version);
  WriteTime(out, "created_at", vm.created);
  WriteTime(out, "updated_at", vm.updated);
  WriteTime(out, "deleted_at", vm.deleted);
  WriteFailure(out, vm.failure);
  out.Member("console_url", VmUrl(vm.id) + "/console");
  out.EndObject();
  return text;
}

std::string TextOf(const model::Operation& operation, const StepName& step_name) {
  std::string text;
  text.reserve(kOperationBytes);
  JsonWriter out(text);
  out.BeginObject();
  out.Member("id", ToString(operation.id));
  out.Member("kind", ToString(operation.kind));
  out.Member("state", ToString(operation.state));
  out.Member("attempt", operation.attempt);
  out.Member("stuck", operation.is_stuck);
  WriteTime(out, "accepted_at", operation.accepted);
  WriteTime(out, "updated_at", operation.updated);
  WriteTime(out, "finished_at", operation.finished);
  out.Member("idempotency_key_prefix", operation.key_prefix);
  out.Name("items");
  out.BeginArray();
  for (const model::Item& item : operation.items) WriteItem(out, operation, item, step_name);
  out.EndArray();
  WriteFailure(out, operation.failure);
  out.Name("vms");
  out.BeginArray();
  for (const model::Item& item : operation.items) out.Value(ToString(item.subject));
  out.EndArray();
  out.EndObject();
  return text;
}

json::object JsonOf(const model::Resources& resources) {
  return {{"vms", resources.vms},
          {"cpus", resources.cpus},
          {"memory_mib", resources.memory_mib},
          {"disk_gib", resources.disk_gib}};
}

json::object JsonOf(const model::Image& image) {
  json::object object;
  object["name"] = image.name;
  object["kind"] = ToString(image.kind);
  object["aliases"] = json::array(image.aliases.begin(), image.aliases.end());
  object["source"] = "config";
  if (image.HasDisk()) object["disk_format"] = image.disk_format;
  return object;
}

json::object JsonOf(const model::StoredImage& image) {
  json::object object;
  object["name"] = image.name;
  object["kind"] = ToString(image.kind);
  object["aliases"] = json::array(image.aliases.begin(), image.aliases.end());
  object["source"] = "store";
  if (image.disk) {
    object["disk_sha256"] = ToHex(*image.disk);
    object["disk_format"] = image.disk_format;
  }
  if (image.kernel) object["kernel_sha256"] = ToHex(*image.kernel);
  if (image.initrd) object["initrd_sha256"] = ToHex(*image.initrd);
  object["size_bytes"] = image.bytes;
  AddTime(object, "added_at", image.added);
  return object;
}

json::object JsonOf(const service::HostView& view) {
  json::object object;
  object["id"] = view.host.id.value;
  const std::string uri = WithoutPassword(view.host.uri);
  object["uri"] = uri;
  object["state"] = ToString(view.host.state);
  object["returning"] = view.host.is_returning;
  object["reachable"] = view.status.is_reachable;
  AddTime(object, "since", view.status.since);
  const auto& facts = view.status.facts;
  object["hypervisor"] = facts ? json::value(facts->hypervisor) : json::value();
  object["accelerator"] = facts ? json::value(facts->accelerator) : json::value();
  object["networks"] = json::array(view.networks.begin(), view.networks.end());
  object["capacity"] = JsonOf(view.host.capacity);
  object["reserved"] = JsonOf(view.host.reserved);
  // Hypervisors like to repeat the URI in their errors.
  const auto shown = [&](std::string text) {
    ReplaceAll(text, view.host.uri, uri);
    return text;
  };
  if (!view.status.problem.empty()) object["problem"] = shown(view.status.problem);
  if (view.status.last_error_at) {
    object["last_error"] = {{"at", FormatRfc3339(*view.status.last_error_at)},
                            {"detail", shown(view.status.last_error)}};
  }
  return object;
}

json::object JsonOf(const workflows::ReconcileReport& report) {
  json::object object;
  object["host"] = report.host.value;
  object["domains"] = report.domains;
  object["ours"] = report.ours;
  object["missing"] = report.missing;
  object["found"] = report.found;
  object["restarted"] = report.restarted;
  object["stuck"] = report.stuck;
  object["made_due"] = report.made_due;
  object["strays"] = report.strays;
  object["quarantined"] = report.quarantined;
  object["removed"] = report.removed;
  object["kept_volumes"] = report.kept_volumes;
  object["stopped"] = report.stopped;
  object["second_copies"] = report.second_copies;
  object["alarmed"] = report.is_alarmed;
  if (!report.problem.empty()) object["problem"] = report.problem;
  return object;
}

json::object JsonOf(const model::Token& token, Time now) {
  json::object object;
  object["id"] = ToString(token.id);
  object["project"] = token.project.value;
  object["role"] = ToString(token.role);
  object["name"] = token.name;
  object["prefix"] = token.prefix;
  object["state"] = token.revoked ? "revoked" : token.IsLive(now) ? "live" : "expired";
  object["created_at"] = FormatRfc3339(token.created);
  object["created_by"] = token.created_by ? json::value(ToString(*token.created_by)) : nullptr;
  object["expires_at"] = token.expires ? json::value(FormatRfc3339(*token.expires)) : nullptr;
  object["revoked_at"] = token.revoked ? json::value(FormatRfc3339(*token.revoked)) : nullptr;
  return object;
}

json::array TimelineOf(const model::Operation& operation,
                       const std::vector<model::TimelineEntry>& entries) {
  json::array items;
  const bool has_acceptance = std::ranges::any_of(
      entries, [](const model::TimelineEntry& entry) { return entry.event == "accepted"; });
  if (!has_acceptance) {
    model::TimelineEntry accepted;
    accepted.at = operation.accepted;
    accepted.event = "accepted";
    accepted.detail = fmt::format("a {} of {} VM{}", ToString(operation.kind),
                                  operation.items.size(), operation.items.size() == 1 ? "" : "s");
    items.push_back(EntryJson(accepted));
  }
  for (const model::TimelineEntry& entry : entries) items.push_back(EntryJson(entry));
  return items;
}

std::string_view WordOf(service::DryRun::Would would) {
  using Would = service::DryRun::Would;
  switch (would) {
    case Would::kCreate: return "create";
    case Would::kReplay: return "replay";
    case Would::kNewAttempt: return "new_attempt";
    case Would::kMismatch: return "mismatch";
    case Would::kExpired: return "expired";
    case Would::kRefuse: return "refuse";
  }
  return "refuse";
}

std::string WithoutPassword(const std::string& uri) {
  constexpr std::string_view kHidden = "***";
  std::string shown = uri;
  // The user part ends at the last @ of the authority: a password may hold one, badly.
  if (const std::size_t scheme = shown.find("://"); scheme != std::string::npos) {
    const std::size_t begin = scheme + 3;
    const std::size_t end = std::min(shown.find_first_of("/?#", begin), shown.size());
    const std::size_t at = shown.substr(0, end).rfind('@');
    const std::size_t colon = shown.find(':', begin);
    if (at != std::string::npos && at >= begin && colon < at) {
      shown.replace(colon + 1, at - colon - 1, kHidden);
    }
  }
  const std::size_t query = shown.find('?');
  for (std::size_t at = query; at != std::string::npos; at = shown.find('&', at + 1)) {
    const std::size_t equals = shown.find('=', at);
    const std::size_t end = std::min(shown.find('&', at + 1), shown.size());
    if (equals >= end) continue;
    if (shown.substr(at, equals - at).find("pass") == std::string::npos) continue;
    shown.replace(equals + 1, end - equals - 1, kHidden);
  }
  return shown;
}

}  // namespace vmonce::rest
