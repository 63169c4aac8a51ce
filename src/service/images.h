// What names of images mean now: those of the configuration, and those of the store.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "model/image.h"

namespace vmonce::service {

// Thread-safe. Quick: it is asked for every create. The ledger has the last word on stored images.
class ImageCatalog {
 public:
  // Of the configuration: names and aliases are unique (it was checked).
  ImageCatalog(Threads& threads, std::vector<model::Image> configured);

  // By name or alias. The configuration's come first: the store refuses their names, but a later
  // configuration may take one.
  std::optional<model::Image> Resolve(std::string_view name) const;
  const std::vector<model::Image>& Configured() const { return configured_; }
  // Whether a name or alias is the configuration's.
  bool IsConfigured(std::string_view name) const;

  // Disks of the configuration that changed under the VMs that stand on them: path → how many do.
  // Takes the place of what was known before.
  void SetChanged(std::map<std::string, std::int64_t> changed);
  // Why nothing may be made of the image now, as whole sentences; absent when it may.
  std::optional<std::string> ProblemOf(const model::Image& image) const;

  // Takes the place of all stored images that were known before.
  void SetStored(const std::vector<model::Image>& stored);

 private:
  // Every name and alias → the image.
  using Names = std::map<std::string, model::Image, std::less<>>;

  const std::vector<model::Image> configured_;
  Names configured_names_;
  const std::unique_ptr<Monitor> monitor_;
  Names stored_names_ GUARDED_BY(*monitor_);
  std::map<std::string, std::int64_t> changed_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::service
