#include "app/console_text.h"

#include <charconv>

#include "client/url.h"
#include "model/limits.h"

namespace vmonce::app {

namespace limits = model::limits;

ConsolePart ReadConsole(const Invocation& run, std::string_view vm_id, std::int64_t offset) {
  ConsolePart part;
  part.call = Get(run, "/v1/vms/" + client::PercentEncode(vm_id) + "/console",
                  {{"offset", std::to_string(offset)}});
  part.next = offset;
  if (!part.call.IsSuccess()) return part;
  part.bytes = std::move(part.call.response->body);
  part.next = offset + static_cast<std::int64_t>(part.bytes.size());
  if (const auto next = part.call.response->Header("vmonce-console-next")) {
    std::from_chars(next->data(), next->data() + next->size(), part.next);
  }
  return part;
}

void SayConsoleTail(const Invocation& run, std::string_view vm_id) {
  std::string text;
  std::int64_t offset = 0;
  for (std::size_t total = 0; total < limits::kClientConsoleBytes;) {
    const ConsolePart part = ReadConsole(run, vm_id, offset);
    if (!part.call.IsSuccess() || part.bytes.empty()) break;
    total += part.bytes.size();
    offset = part.next;
    // Only the end is shown; a part is larger than any tail.
    text = text.substr(text.size() - std::min(text.size(), std::size_t{64} << 10)) + part.bytes;
  }
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    auto line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.empty()) return;
  run.messages.Say("  last lines of its console:");
  const std::size_t shown = std::min(lines.size(), limits::kClientConsoleTailLines);
  for (std::size_t i = lines.size() - shown; i < lines.size(); ++i) {
    run.messages.Say("    " + std::string(lines[i]));
  }
}

}  // namespace vmonce::app
