// For tests: one of each value that the API shows, with nothing left out.
#pragma once

#include "model/operation.h"
#include "model/vm.h"

namespace vmonce::rest {

inline const Uuid kVmUuid = *ParseUuid("01890a5d-ac96-774b-bcce-b302099a8057");
inline const Uuid kOperationUuid = *ParseUuid("01890a5d-ac96-774b-bcce-b302099a8000");
inline constexpr Time kNoon{std::chrono::hours(12)};

inline model::Vm SampleVm() {
  model::Vm vm;
  vm.id = {kVmUuid};
  vm.project = {"default"};
  vm.name = "web";
  vm.operation = {kOperationUuid};
  vm.index = 2;
  vm.key_prefix = "k-12…";
  vm.spec.image.name = "debian-12";
  vm.spec.image.disk_path = "/images/debian.qcow2";
  vm.spec.hostname = "web";
  vm.spec.ssh_keys = {"ssh-rsa AAAA"};
  vm.mac = "52:54:00:9a:80:57";
  vm.labels = {{"tier", "front"}};
  vm.state = model::VmState::kReady;
  vm.observed = model::Observed::kRunning;
  vm.host = {{"local"}};
  vm.version = 7;
  vm.failure = model::Failure{"no_capacity", "full", true};
  vm.created = kNoon;
  vm.updated = kNoon + std::chrono::seconds(1);
  vm.deleted = kNoon + std::chrono::seconds(2);
  return vm;
}

inline model::Operation SampleOperation(model::OperationState state) {
  model::Operation operation;
  operation.id = {kOperationUuid};
  operation.project = {"default"};
  operation.state = state;
  operation.key_hash = Sha256("key");
  operation.key_prefix = "k-12…";
  operation.canonical_request = "{\"secret\":1}";
  operation.sealed_secrets = "sealed";
  operation.accepted = kNoon;
  operation.updated = kNoon;
  if (model::IsFinished(state)) operation.finished = kNoon;
  model::Item item;
  item.subject = kVmUuid;
  item.step = 1;
  operation.items = {item};
  if (state == model::OperationState::kFailed) {
    operation.failure = model::Failure{"no_capacity", "No host has room.", true};
    operation.items[0].failure = operation.failure;
    operation.items[0].phase = model::ItemPhase::kFailed;
    operation.items[0].step = -1;
  }
  return operation;
}

inline std::string SampleStepName(model::OperationKind, int step) {
  return step == 1 ? "disk" : "";
}

}  // namespace vmonce::rest
