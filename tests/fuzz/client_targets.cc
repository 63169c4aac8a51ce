// What a client reads: answers of whatever stands at the URL, and its own kept creates.
#include <fstream>
#include <string>

#include "app/json_text.h"
#include "base/check.h"
#include "base/fake_clock.h"
#include "base/json.h"
#include "base/temp_dir.h"
#include "client/intent_file.h"
#include "client/problem.h"
#include "client/url.h"
#include "tests/fuzz/targets.h"

namespace vmonce::fuzz {

// The first line is a Retry-After, the rest a body.
void FuzzAnswer(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  client::HttpResponse response;
  response.status = 503;
  response.headers = {{"content-type", "application/problem+json"},
                      {"retry-after", std::string(input.substr(0, end))}};
  response.body = input.substr(std::min(end + 1, input.size()));
  const client::ApiProblem problem = client::ReadProblem(response);
  CHECK(!problem.code.empty());
  CHECK(!problem.retry_after || problem.retry_after->count() >= 0);
  if (const auto url = client::NormaliseBaseUrl(input))
    CHECK(client::NormaliseBaseUrl(*url) == *url);

  const auto value = ParseStrictJson(response.body);
  if (!value) return;
  CHECK(!app::Yaml(*value).empty());
  CHECK(ParseStrictJson(app::PrettyJson(*value)).has_value());
  app::CellAt(*value, "labels");
  app::NumberAt(*value, "capacity.cpus", 0);
  for (const auto& item : app::ListAt(*value, "items")) app::TextAt(item, "id");
}

void FuzzIntentFile(std::string_view input) {
  static const TempDir directory;
  static FakeClock clock;
  const std::string path = directory.File("0123456789abcdef.json");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << input;
  client::IntentStore store(directory.path(), clock);
  const auto listed = store.List();
  CHECK(listed.has_value() && listed->size() <= 1);
  for (const client::Intent& intent : *listed) {
    CHECK(!intent.key.empty() && !intent.url.empty() && !intent.body.empty());
    const auto held = store.Hold(intent.key);
    CHECK(held ? (*held)->intent() == intent : held.error().code == ErrorCode::kNotFound);
    const auto same = store.HoldSame(intent.url, intent.body);
    CHECK(!same || *same == nullptr || (*same)->intent() == intent);
  }
}

}  // namespace vmonce::fuzz
