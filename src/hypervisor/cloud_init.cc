#include "hypervisor/cloud_init.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "base/file.h"
#include "base/process.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

std::string Quoted(std::string_view text) {
  return boost::json::serialize(boost::json::string(text));
}

struct SeedFile {
  std::string_view name;
  std::string text;
};

Result<std::string> RunGenisoimage(const std::string& scratch, std::vector<std::string> files) {
  const std::string image = scratch + "/seed.iso";
  ProcessSpec spec{.argv = {"genisoimage", "-quiet", "-V", "CIDATA", "-J", "-R", "-o", image},
                   .timeout = model::limits::kToolDeadline,
                   .max_output_bytes = model::limits::kToolOutputBytes};
  spec.argv.insert(spec.argv.end(), files.begin(), files.end());
  auto ran = RunProcess(spec);
  if (!ran) {
    const bool is_missing = ran.error().code == ErrorCode::kNotFound;
    return Fail(is_missing ? ErrorCode::kRefused : ErrorCode::kUnavailable,
                is_missing ? "genisoimage is not installed (Debian: apt install genisoimage)"
                           : ran.error().detail);
  }
  if (!ran->Succeeded()) return Fail(ErrorCode::kUnavailable, "genisoimage " + ran->Describe());
  return image;
}

}  // namespace

std::string MetaData(const ports::SeedOrder& order) {
  std::string text = fmt::format("instance-id: {}\nlocal-hostname: {}\n", Quoted(order.instance_id),
                                 Quoted(order.hostname));
  if (order.ssh_keys.empty()) return text;
  text += "public-keys:\n";
  for (const std::string& key : order.ssh_keys) text += fmt::format("  - {}\n", Quoted(key));
  return text;
}

// Every Ethernet device asks by DHCP: user-mode networking answers at once, and names differ
// between guests.
std::string NetworkConfig() {
  return "version: 2\n"
         "ethernets:\n"
         "  all:\n"
         "    match: {name: \"e*\"}\n"
         "    dhcp4: true\n";
}

std::string UserData(const ports::SeedOrder& order) {
  return order.user_data.empty() ? "#cloud-config\n{}\n" : order.user_data;
}

Result<std::string> BuildSeedImage(const ports::SeedOrder& order, const std::string& scratch) {
  const std::array<SeedFile, 3> files{{{"meta-data", MetaData(order)},
                                       {"user-data", UserData(order)},
                                       {"network-config", NetworkConfig()}}};
  std::vector<std::string> paths;
  Status written;
  for (const SeedFile& file : files) {
    paths.push_back(fmt::format("{}/{}", scratch, file.name));
    written = WriteFileAtomically(paths.back(), file.text, 0600);
    if (!written) break;
  }
  Result<std::string> image = written ? RunGenisoimage(scratch, paths)
                                      : Fail(ErrorCode::kUnavailable, written.error().detail);
  for (const std::string& path : paths) unlink(path.c_str());
  return image;
}

}  // namespace vmonce::hypervisor
