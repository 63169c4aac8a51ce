// The table of checks; and those of what vmonce itself is told: configuration, server, images.
#include "app/doctor.h"

#include <fmt/format.h>

#include "model/doctor_limits.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

constexpr Check kChecks[] = {
    &CheckConfig,  &CheckServer,   &CheckHosts,    &CheckSession, &CheckKvm,       &CheckPrograms,
    &CheckLibvirt, &CheckQemuUser, &CheckRootPath, &CheckFolders, &CheckApparmor,  &CheckNetwork,
    &CheckDhcp,    &CheckDisk,     &CheckMemory,   &CheckImage,   &CheckPublicKey, &CheckClock,
};

}  // namespace

std::string_view ToString(FindingResult result) {
  switch (result) {
    case FindingResult::kOk: return "ok";
    case FindingResult::kWarn: return "warn";
    case FindingResult::kFail: return "fail";
  }
  return "";
}

std::vector<Finding> Diagnose(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const Check check : kChecks) {
    for (Finding& finding : check(facts)) findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> CheckConfig(const DoctorFacts& facts) {
  const std::string& path = facts.config_path;
  if (facts.is_config_denied) {
    return {{"config", FindingResult::kWarn, fmt::format("{} cannot be read by you", path),
             "what the service is told is not known here; the checks below take the defaults",
             "sudo vmonce doctor"}};
  }
  if (!facts.config_mistakes.empty()) {
    const ConfigMistake& first = facts.config_mistakes.front();
    return {{"config", FindingResult::kFail, "the service would not start with its configuration",
             first.Format(),
             path.empty() ? "vmonce config check"
                          : fmt::format("vmonce config check --config {}", path)}};
  }
  return {{"config", FindingResult::kOk,
           path.empty() ? "there is no configuration file: the defaults are valid"
                        : fmt::format("{} is valid", path),
           "", ""}};
}

std::vector<Finding> CheckServer(const DoctorFacts& facts) {
  const ServerFacts& server = facts.server;
  if (server.url.empty()) return {};
  if (!server.has_answered) {
    const bool is_elsewhere = server.is_local && !server.url.ends_with(facts.listen) &&
                              !facts.listen.empty() && !facts.listen.ends_with(":0");
    std::string repair = "name the right server with --url or VMONCE_URL";
    if (server.is_local) repair = "vmonce serve";
    if (server.is_local && !facts.config_path.empty()) {
      repair = fmt::format("vmonce serve --config {}", facts.config_path);
    }
    std::string why = server.error;
    if (is_elsewhere) {
      why += fmt::format("; the configuration says that it listens on {}: try --url http://{}",
                         facts.listen, facts.listen);
    }
    // On this computer it may simply not have been started yet.
    return {{"server", server.is_local ? FindingResult::kWarn : FindingResult::kFail,
             fmt::format("no service answers at {}", server.url), std::move(why),
             std::move(repair)}};
  }
  if (server.code.starts_with("http_")) {
    return {{"server", FindingResult::kFail,
             fmt::format("what answers at {} is not vmonce", server.url), server.detail,
             "vmonce serve --set server.listen=127.0.0.1:8081, and --url http://127.0.0.1:8081"}};
  }
  if (server.status != 200) {
    return {{"server", FindingResult::kFail, fmt::format("{} is not ready", server.url),
             fmt::format("{} ({})", server.detail, server.code),
             fmt::format("vmonce --url {} hosts", server.url)}};
  }
  return {{"server", FindingResult::kOk, fmt::format("{} is ready", server.url), "", ""}};
}

std::vector<Finding> CheckHosts(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const ServerFacts::Host& host : facts.server.hosts) {
    if (host.is_reachable) {
      findings.push_back({"host", FindingResult::kOk,
                          fmt::format("the service reaches host {}", host.id), "", ""});
    } else {
      findings.push_back(
          {"host", FindingResult::kFail, fmt::format("the service does not reach host {}", host.id),
           host.problem.empty() ? "it has said no more" : host.problem, "vmonce hosts -o yaml"});
    }
  }
  return findings;
}

std::vector<Finding> CheckImage(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  for (const ServerFacts::Image& image : facts.server.images_with_problems) {
    findings.push_back({"image", FindingResult::kFail,
                        fmt::format("no VM can be made of image {} now", image.name), image.problem,
                        "cp -p BACKUP FILE; or vmonce image add NEW-FILE, and delete the VMs whose "
                        "disks are damaged"});
  }
  if (!findings.empty()) return findings;
  if (facts.server.images.value_or(0) > 0) {
    return {{"image", FindingResult::kOk,
             fmt::format("the service offers {} image{}", *facts.server.images,
                         *facts.server.images == 1 ? "" : "s"),
             "", ""}};
  }
  if (!facts.images.empty() && !facts.server.images) {
    return {{"image", FindingResult::kOk,
             fmt::format("image {} is there", facts.images.front().name), "", ""}};
  }
  if (facts.is_config_denied && !facts.server.images) return {};
  return {{"image", FindingResult::kFail, "there is no image to make VMs from",
           facts.images.empty() ? "the configuration names none"
                                : "the service was started with another configuration",
           facts.images.empty()
               ? fmt::format(
                     "vmonce image add debian-12-genericcloud-amd64.qcow2 --alias debian; or add "
                     "to {}: [[image]] name = \"debian\", kind = \"disk\", disk = "
                     "\"/PATH/debian-12-genericcloud-amd64.qcow2\", disk_format = \"qcow2\"",
                     facts.config_path.empty() ? kDefaultConfigPath : facts.config_path)
               : "start the service again"}};
}

std::vector<Finding> CheckPublicKey(const DoctorFacts& facts) {
  if (!facts.public_keys.empty()) {
    return {{"public_key", FindingResult::kOk,
             fmt::format("{} can be given to --ssh-key", facts.public_keys.front()), "", ""}};
  }
  return {{"public_key", FindingResult::kWarn, "you have no public key in ~/.ssh",
           "without one you get into a guest by its console only", "ssh-keygen -t ed25519"}};
}

std::vector<Finding> CheckClock(const DoctorFacts& facts) {
  constexpr const char* kRepair = "sudo timedatectl set-ntp true";
  if (facts.year < limits::kDoctorYearMin) {
    return {{"clock", FindingResult::kFail, fmt::format("the clock says the year {}", facts.year),
             "certificates, tokens and the ages of keys would be judged wrongly", kRepair}};
  }
  const auto ahead = facts.server.ahead.value_or(std::chrono::seconds(0));
  if (std::chrono::abs(ahead) > limits::kDoctorClockSkew) {
    return {{"clock", FindingResult::kWarn,
             fmt::format("the server's clock is {} s {} this one", std::chrono::abs(ahead).count(),
                         ahead.count() > 0 ? "before" : "behind"),
             "times in answers and logs do not fit together", kRepair}};
  }
  if (!facts.is_clock_synchronised.value_or(true)) {
    return {{"clock", FindingResult::kWarn, "the clock is not synchronised",
             "the kernel knows no time server; times may drift", kRepair}};
  }
  return {{"clock", FindingResult::kOk,
           facts.is_clock_synchronised ? "the clock is synchronised" : "the clock is plausible", "",
           ""}};
}

}  // namespace vmonce::app
