#include "workflows/base_images.h"

#include <fmt/format.h>

#include "model/image_limits.h"

namespace vmonce::workflows {
namespace {

namespace limits = model::limits;
using engine::StepResult;

constexpr std::string_view kWaits = "waits";

// The memo is the last share that was told.
StepResult Progress(const engine::StepContext& context, const ports::ImageTransfer& transfer,
                    const model::Vm& vm) {
  const auto percent = transfer.bytes == 0 ? 0 : transfer.sent * 100 / transfer.bytes;
  const auto share = percent / limits::kImageProgressPercent;
  const std::string memo = fmt::format("sent {}", share);
  if (memo == context.item.memo) return StepResult::Again(Milliseconds(0), memo);
  return StepResult::Again(Milliseconds(0), memo,
                           fmt::format("image {}: {} of {} MiB sent to host {}", vm.spec.image.name,
                                       transfer.sent >> 20, transfer.bytes >> 20, vm.host->value));
}

}  // namespace

std::optional<Digest> StoredDisk(const model::Image& image) {
  if (image.id.empty() || !image.HasDisk()) return std::nullopt;
  // A file of the store is named by what it holds.
  return ParseDigest(image.disk_path.substr(image.disk_path.rfind('/') + 1));
}

std::optional<StepResult> CheckImageFile(const WorkflowParts& parts, const model::Vm& vm) {
  if (parts.image_watch == nullptr) return std::nullopt;
  const Status same = parts.image_watch->BeforeOverlay(vm.spec.image);
  if (same) return std::nullopt;
  if (same.error().code != ErrorCode::kConflict) return StepResult::From(same.error());
  // An operator can put it back, and then the same key makes the VM.
  return StepResult::Unavailable("image_changed", same.error().detail);
}

std::optional<StepResult> BringImage(const engine::StepContext& context, ports::Hypervisor& host,
                                     const model::Vm& vm) {
  const std::optional<Digest> digest = StoredDisk(vm.spec.image);
  if (!digest) return std::nullopt;
  const auto transfer =
      host.BringImage({vm.id, *digest, vm.spec.image.disk_path}, GuardOf(context));
  if (!transfer) {
    if (transfer.error().code == ErrorCode::kNotFound) {
      return StepResult::Unavailable("image_unavailable", transfer.error().detail);
    }
    return StepResult::From(transfer.error());
  }
  if (transfer->is_complete) return std::nullopt;
  if (!transfer->is_others) return Progress(context, *transfer, vm);
  const std::string told = context.item.memo == kWaits
                               ? ""
                               : "image " + vm.spec.image.name + ": another create sends it";
  return StepResult::Again(limits::kImageSentAgain, std::string(kWaits), told);
}

}  // namespace vmonce::workflows
