// One run of a client command: what it touches of the world, and how it calls the server.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/client_settings.h"
#include "app/doctor_facts.h"
#include "app/exit_code.h"
#include "app/output.h"
#include "app/terminal.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/threads.h"
#include "client/curl_transport.h"
#include "client/retrying_client.h"
#include "client/transport.h"

namespace vmonce::app {

struct World {
  client::Transport& transport;
  Clock& clock;
  Random& random;
  Threads& threads;
  Terminal& terminal;
  Environ environment;
  std::stop_token stop;  // Ctrl-C.
  LookAtMachine look;    // For doctor.
};

struct Globals {
  std::string url{kDefaultUrl};  // Of NormaliseBaseUrl().
  std::string token;             // "" for none.
  client::TlsIdentity tls{};
  std::string reach;  // The flags that led to this server, to be repeated in hints: "--url X ".
  std::vector<ConfigValue> explanation;  // Where the client's settings came from.
  OutputFormat format = OutputFormat::kTable;
  std::optional<Milliseconds> timeout;  // Ends the waiting, never the operation.
};

struct Invocation {
  const World& world;
  const Globals& globals;
  client::RetryingClient& client;
  Messages& messages;
  Instant begin;
};

using Query = std::vector<std::pair<std::string, std::string>>;

// When the waiting of this command ends.
Instant Deadline(const Invocation& run);

// A read, tried for a short while.
client::CallResult Get(const Invocation& run, std::string path, Query query = {});

// A change under `key`, tried for a longer while.
client::CallResult Change(const Invocation& run, std::string method, std::string path,
                          std::string key);
// What makes something new of `body`, under a key of its own.
client::CallResult Post(const Invocation& run, std::string path, const boost::json::object& body);

// Every item of a list that comes in pages, one after the other. `failure` is set when a page could
// not be had.
struct Listing {
  std::vector<boost::json::value> items;
  std::optional<client::CallResult> failure;
};
Listing GetAll(const Invocation& run, std::string path, Query query);

// A key that nobody has used.
std::string NewKey(const World& world);

// A command line that reaches the same server: "vmonce get web-1".
std::string CommandHint(const Invocation& run, std::string_view command);

// Says on stderr what went wrong, why, the repair, the operation and the API's code.
ExitCode ReportFailure(const Invocation& run, std::string_view what,
                       const client::CallResult& result);

// For an answer of 2xx that lacks what the contract promises.
ExitCode ReportForeignAnswer(const Invocation& run, std::string_view what);

// What a person can do about a code of the API; "" when there is nothing special.
std::string RepairOf(std::string_view code);

}  // namespace vmonce::app
