// One node: ledger, hosts, engine, service and faces, wired for production. The only place that
// builds them all.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/config.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/result.h"
#include "base/threads.h"
#include "http/tls_context.h"

namespace vmonce::app {

// All outlive the node.
struct NodeDoors {
  Clock& clock;
  Random& random;
  Threads& threads;
  Logger& logger;
};

// Absent: the service speaks no TLS.
std::optional<http::TlsFiles> TlsFilesOf(const ServerConfig& server);

// Open, Start, Stop and the destructor belong to one thread.
class Node {
 public:
  // Opens the ledger and makes the doors to the hosts; nothing runs yet and no host is connected.
  // An error says, for people, what is wrong and what to do; nothing was changed then but files
  // made in the state directory.
  static Result<std::unique_ptr<Node>> Open(const Config& config, NodeDoors doors);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Listens, then works. Hosts are connected in the background: /readyz tells when the first
  // answers.
  Status Start();
  // Ends work in order: no new requests, then no new steps. False: a call to a hypervisor is still
  // out, and the process must end by _exit.
  bool Stop();

  // The thread that takes requests came round within `within`: it does not hang. Thread-safe.
  bool IsTakingRequests(Milliseconds within) const;
  // Reads the TLS files again, and logs what came of it: with a bad file the old certificate stays.
  // Open connections go on. Between Start and Stop; nothing happens without TLS.
  void ReloadTls();

  std::string Url() const;
  std::string LedgerId() const;

 private:
  struct Parts;
  explicit Node(std::unique_ptr<Parts> parts);
  void TellCertificate();
  std::unique_ptr<Parts> parts_;
};

}  // namespace vmonce::app
