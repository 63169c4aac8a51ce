// cloud-init's NoCloud data source
// (https://cloudinit.readthedocs.io/en/latest/reference/datasources/nocloud.html): what a guest
// learns at its first boot. The texts are pure; the image is made by genisoimage.
#pragma once

#include <string>

#include "base/result.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// YAML. What came from a caller stands in it only as JSON strings, which YAML reads alike.
std::string MetaData(const ports::SeedOrder& order);
std::string NetworkConfig();
// The caller's bytes; without any, a configuration that asks for nothing.
std::string UserData(const ports::SeedOrder& order);

// Makes the ISO 9660 image (volume id CIDATA) inside `scratch`, which only its owner can read, and
// answers its path. The clear texts are removed again before it returns; the caller removes the
// image. kUnavailable: nothing was made. kRefused: genisoimage is missing.
Result<std::string> BuildSeedImage(const ports::SeedOrder& order, const std::string& scratch);

}  // namespace vmonce::hypervisor
