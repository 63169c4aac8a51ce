#include "service/images.h"

#include "workflows/image_watch.h"

namespace vmonce::service {
namespace {

std::map<std::string, model::Image, std::less<>> NamesOf(const std::vector<model::Image>& images) {
  std::map<std::string, model::Image, std::less<>> names;
  for (const model::Image& image : images) {
    for (const std::string& alias : image.aliases) names.emplace(alias, image);
  }
  for (const model::Image& image : images) names.insert_or_assign(image.name, image);
  return names;
}

}  // namespace

ImageCatalog::ImageCatalog(Threads& threads, std::vector<model::Image> configured)
    : configured_(std::move(configured)),
      configured_names_(NamesOf(configured_)),
      monitor_(threads.NewMonitor()) {}

std::optional<model::Image> ImageCatalog::Resolve(std::string_view name) const {
  const auto configured = configured_names_.find(name);
  if (configured != configured_names_.end()) return configured->second;
  MonitorLock lock(*monitor_);
  const auto stored = stored_names_.find(name);
  if (stored == stored_names_.end()) return std::nullopt;
  return stored->second;
}

bool ImageCatalog::IsConfigured(std::string_view name) const {
  return configured_names_.contains(name);
}

void ImageCatalog::SetChanged(std::map<std::string, std::int64_t> changed) {
  MonitorLock lock(*monitor_);
  changed_ = std::move(changed);
}

std::optional<std::string> ImageCatalog::ProblemOf(const model::Image& image) const {
  MonitorLock lock(*monitor_);
  const auto found = image.id.empty() ? changed_.find(image.disk_path) : changed_.end();
  if (found == changed_.end()) return std::nullopt;
  return workflows::TellImageChanged(found->first, found->second);
}

void ImageCatalog::SetStored(const std::vector<model::Image>& stored) {
  Names names = NamesOf(stored);
  MonitorLock lock(*monitor_);
  stored_names_ = std::move(names);
}

}  // namespace vmonce::service
