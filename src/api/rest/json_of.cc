#include "api/rest/json_of.h"

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "model/restart.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;

// Room for all of them at once.
constexpr std::size_t kVmMembers = 32;
constexpr std::size_t kOperationMembers = 16;

void AddTime(json::object& object, std::string_view name, const std::optional<Time>& time) {
  if (time) object[name] = FormatRfc3339(*time);
}

void AddFailure(json::object& object, const std::optional<model::Failure>& failure) {
  if (failure) object["failure"] = JsonOf(*failure);
}

void AddItem(json::array& items, const model::Operation& operation, const model::Item& item,
             const StepName& step_name) {
  json::object& object = items.emplace_back(json::object(items.storage())).get_object();
  object["index"] = item.index;
  object["vm"] = ToString(item.subject);
  object["phase"] = ToString(item.phase);
  object["step"] = item.step;
  object["step_name"] = item.step < 0 ? std::string() : step_name(operation.kind, item.step);
  object["failures"] = item.failures;
  AddFailure(object, item.failure);
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
json::array ForwardsJson(const model::Vm& vm) {
  json::array array;
  for (std::size_t i = 0; i < vm.spec.forwards.size(); ++i) {
    const model::Forward& asked = vm.spec.forwards[i];
    json::object object;
    object["guest_port"] = asked.guest_port;
    object["protocol"] = ToString(asked.protocol);
    object["host_address"] = nullptr;
    object["host_port"] = nullptr;
    if (i < vm.forwards.size()) {
      object["host_address"] = vm.forwards[i].host_address;
      object["host_port"] = vm.forwards[i].host_port;
    }
    array.push_back(std::move(object));
  }
  return array;
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

json::object JsonOf(const model::Vm& vm, json::storage_ptr storage) {
  json::object object(std::move(storage));
  object.reserve(kVmMembers);
  object["id"] = ToString(vm.id);
  object["name"] = vm.name;
  object["state"] = ToString(vm.state);
  object["desired"] = ToString(vm.desired);
  object["observed"] = ToString(vm.observed);
  const bool has_cause = vm.stopped_by != model::StopCause::kNone;
  object["stopped_by"] = has_cause ? json::value(ToString(vm.stopped_by)) : json::value();
  object["restart"] = ToString(vm.restart);
  object["restarts"] = vm.restarts;
  object["stuck"] = IsRestartStuck(vm);
  object["image"] = vm.spec.image.name;
  object["cpus"] = vm.spec.cpus;
  object["memory_mib"] = vm.spec.memory_mib;
  object["disk_gib"] = vm.spec.disk_gib;
  object["hostname"] = vm.spec.hostname;
  object["network"] = vm.spec.network;
  object["mac"] = vm.mac;
  object["host"] = vm.host ? json::value(vm.host->value) : json::value();
  object["forwards"] = ForwardsJson(vm);
  object["addresses"] = json::array(vm.addresses.begin(), vm.addresses.end());
  json::object& labels = object["labels"].emplace_object();
  for (const auto& [key, value] : vm.labels) labels[key] = value;
  object["operation"] = ToString(vm.operation);
  object["idempotency_key_prefix"] = vm.key_prefix;
  object["index"] = vm.index;
  object["version"] = vm.version;
  AddTime(object, "created_at", vm.created);
  AddTime(object, "updated_at", vm.updated);
  AddTime(object, "deleted_at", vm.deleted);
  AddFailure(object, vm.failure);
  object["console_url"] = VmUrl(vm.id) + "/console";
  return object;
}

json::array JsonOf(const std::vector<model::Vm>& vms) {
  json::array array;
  for (const model::Vm& vm : vms) array.push_back(JsonOf(vm));
  return array;
}

json::object JsonOf(const model::Operation& operation, const StepName& step_name,
                    json::storage_ptr storage) {
  json::object object(std::move(storage));
  object.reserve(kOperationMembers);
  object["id"] = ToString(operation.id);
  object["kind"] = ToString(operation.kind);
  object["state"] = ToString(operation.state);
  object["attempt"] = operation.attempt;
  object["stuck"] = operation.is_stuck;
  AddTime(object, "accepted_at", operation.accepted);
  AddTime(object, "updated_at", operation.updated);
  AddTime(object, "finished_at", operation.finished);
  object["idempotency_key_prefix"] = operation.key_prefix;
  json::array& items = object["items"].emplace_array();
  for (const model::Item& item : operation.items) AddItem(items, operation, item, step_name);
  AddFailure(object, operation.failure);
  json::array& vms = object["vms"].emplace_array();
  for (const model::Item& item : operation.items) vms.emplace_back(ToString(item.subject));
  return object;
}

json::object JsonOf(const model::Failure& failure) {
  return {{"code", failure.code}, {"detail", failure.detail}, {"retryable", failure.passing}};
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
