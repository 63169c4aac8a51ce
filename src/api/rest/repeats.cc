#include "api/rest/repeats.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "api/rest/gate.h"

namespace vmonce::rest {
namespace {

// What list, index and pointers take for each answer, about.
constexpr std::size_t kRowBytes = 512;

std::size_t BytesOf(const RepeatedAnswer& answer) {
  return kRowBytes + answer.response.body.size() + answer.reading.vms.size() * sizeof(model::VmId);
}

// With its length before it, so that no two lists of fields make one text.
void AppendField(std::string& text, std::string_view field) {
  const std::uint64_t size = field.size();
  char bytes[sizeof size];
  std::memcpy(bytes, &size, sizeof size);
  text.append(bytes, sizeof bytes).append(field);
}

void AppendLines(std::string& text, const http::HeaderList& headers, std::string_view name) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!http::EqualsIgnoringCase(headers.name(i), name)) continue;
    AppendField(text, headers.value(i));
    ++count;
  }
  text += static_cast<char>(std::min<std::size_t>(count, 2));
}

}  // namespace

std::size_t Repeats::HashOfDigest::operator()(const Digest& digest) const noexcept {
  std::size_t first = 0;
  std::memcpy(&first, digest.data(), sizeof first);
  return first;
}

std::shared_ptr<const RepeatedAnswer> Repeats::Find(const Digest& request) {
  MonitorLock lock(*monitor_);
  const auto found = index_.find(request);
  if (found == index_.end()) return nullptr;
  rows_.splice(rows_.begin(), rows_, found->second);
  return found->second->second;
}

void Repeats::Put(const Digest& request, RepeatedAnswer answer) {
  const auto shared = std::make_shared<const RepeatedAnswer>(std::move(answer));
  MonitorLock lock(*monitor_);
  bytes_ += BytesOf(*shared);
  if (const auto found = index_.find(request); found != index_.end()) {
    bytes_ -= BytesOf(*found->second->second);
    found->second->second = shared;
    rows_.splice(rows_.begin(), rows_, found->second);
  } else {
    rows_.emplace_front(request, shared);
    index_.emplace(request, rows_.begin());
  }
  while (bytes_ > most_bytes_) {
    bytes_ -= BytesOf(*rows_.back().second);
    index_.erase(rows_.back().first);
    rows_.pop_back();
  }
}

Digest DigestOfCreate(const http::Request& request) {
  std::string text;
  text.reserve(request.body.size() + 512);
  AppendField(text, CallerOf(request).project.value);
  AppendField(text, request.target);
  for (const std::string_view name : {"content-type", "idempotency-key", "prefer"}) {
    AppendLines(text, request.headers, name);
  }
  AppendField(text, request.body);
  return Sha256(text);
}

}  // namespace vmonce::rest
