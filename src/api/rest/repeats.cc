#include "api/rest/repeats.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "api/rest/gate.h"

namespace vmonce::rest {
namespace {

// What index, order and pointers take for each answer, about.
constexpr std::size_t kRowBytes = 512;

std::size_t BytesOf(const RepeatedAnswer& answer) {
  return kRowBytes + answer.response.lines.size() + answer.response.body.size() +
         answer.reading.vms.size() * sizeof(model::VmId);
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
  const auto found = rows_.find(request);
  if (found == rows_.end()) return nullptr;
  found->second.is_used = true;
  return found->second.answer;
}

void Repeats::Put(const Digest& request, RepeatedAnswer answer) {
  const auto shared = std::make_shared<const RepeatedAnswer>(std::move(answer));
  const std::size_t bytes = BytesOf(*shared);
  if (bytes > most_bytes_) return;
  MonitorLock lock(*monitor_);
  Row& row = rows_[request];
  if (row.answer) {
    bytes_ -= BytesOf(*row.answer);
  } else {
    order_.push_back(request);
  }
  row.answer = shared;
  bytes_ += bytes;
  MakeRoom();
}

void Repeats::MakeRoom() {
  while (bytes_ > most_bytes_) {
    const auto oldest = rows_.find(order_.front());
    if (oldest->second.is_used) {
      oldest->second.is_used = false;
      order_.push_back(order_.front());
    } else {
      bytes_ -= BytesOf(*oldest->second.answer);
      rows_.erase(oldest);
    }
    order_.pop_front();
  }
}

Digest DigestOfCreate(const http::Request& request) {
  std::string text;
  text.reserve(request.body.size() + 512);
  AppendField(text, CallerOf(request).project.value);
  AppendField(text, request.target);
  for (const std::string_view name :
       {"content-type", "idempotency-key", "idempotency-first-sent", "prefer"}) {
    AppendLines(text, request.headers, name);
  }
  AppendField(text, request.body);
  return Sha256(text);
}

}  // namespace vmonce::rest
