// Reads the machines on the hosts into a ledger that was lost, or restored from an older copy
// (protocol section 11). Nothing on a host is changed, and nothing is removed anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "ports/image_registry.h"
#include "ports/ledger.h"
#include "ports/ledger_rebuild.h"
#include "workflows/fleet.h"
#include "workflows/rebuild_rows.h"

namespace vmonce::workflows {

struct RebuildOptions {
  // These are not asked. They stay unread: until a later rebuild has read them, or an operator has
  // declared them dead, no create is taken and nothing is done there.
  std::set<model::HostId> without;
  bool is_dry_run = false;   // Nothing is written, neither in the ledger nor on a host.
  bool run_stopped = false;  // Unknown machines that are off are to run.
};

struct RebuildReport {
  int machines = 0;     // Of this ledger, on the hosts that were read.
  int vms = 0;          // Unknown before, and known now.
  int operations = 0;   // Likewise.
  int handed_back = 0;  // Known, unfinished or failed in the copy, and there: a worker adopts them.
  int given_up = 0;     // Unfinished in the copy, and nowhere.
  std::int64_t newest = 0;         // The highest accept number that any label tells of.
  std::vector<std::string> told;   // What was done, or would be.
  std::vector<std::string> open;   // What a person must settle before the ledger is whole.
  std::set<model::HostId> unread;  // Hosts that stay so.

  bool IsWhole() const { return unread.empty(); }
};

// All of it outlives the Rebuild. Nobody else writes the ledger meanwhile.
struct RebuildParts {
  ports::Ledger& ledger;
  ports::LedgerRebuild& rows;
  ports::ImageRegistry& images;
  Fleet& fleet;
  Clock& clock;
  Random& random;
};

class Rebuild {
 public:
  explicit Rebuild(const RebuildParts& parts) : parts_(parts) {}

  // May be run again, also after a crash at any point. kUnavailable: a host cannot be read; nothing
  // was written but the registration of hosts. Precondition: whatever calls an earlier process left
  // out have ended (Fleet::SettleTime).
  Result<RebuildReport> Run(const RebuildOptions& options);

 private:
  struct Draft;
  struct Survey;

  Status ReadHosts(const RebuildOptions& options, Survey& survey);
  Result<std::vector<ports::DomainSighting>> ListOf(const model::HostId& id, bool is_dry_run);
  FoundMachine MachineOf(const model::HostId& host, ports::DomainSighting seen);
  // What there is to write, in the order of acceptance.
  Result<std::vector<Draft>> Plan(const RebuildOptions& options, Survey& survey);
  Status PlanFound(const RebuildOptions& options, const model::OperationId& id, Survey& survey,
                   std::map<model::OperationId, Draft>& drafts);
  Status PlanUnknown(const RebuildOptions& options, const std::vector<FoundMachine>& machines,
                     Survey& survey, std::map<model::OperationId, Draft>& drafts);
  Status PlanKnown(const model::Operation& operation, const FoundMachine& machine, Survey& survey,
                   std::map<model::OperationId, Draft>& drafts);
  Status PlanMissing(Survey& survey, std::map<model::OperationId, Draft>& drafts);
  Status Write(const Survey& survey, std::vector<Draft>& drafts, RebuildReport& report);
  Status Flag(const std::set<model::HostId>& hosts, bool is_unread);
  Status RegisterImages(Draft& draft, RebuildReport& report);

  const RebuildParts parts_;
};

}  // namespace vmonce::workflows
