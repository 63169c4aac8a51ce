// Knows what everybody was told and what was really done, and breaks the world's story when the two
// do not agree (protocol sections 1, 6, 9 and 10). It believes the hosts, not the service.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hypervisor/simulated_host.h"
#include "model/idempotency.h"
#include "ports/ledger.h"
#include "service/vm_service.h"

namespace vmonce::sim {

struct Stage;

struct Machine;

// What a host has done for a worker.
struct Effect {
  const Machine& host;                       // That was meant,
  const hypervisor::SimulatedHost& reached;  // and that was reached.
  model::VmId vm;
  const ports::EffectGuard& guard;
  Instant at;  // By the clock that the guard's deadline is of.
};

// One key as its client knows it.
struct KeyStory {
  model::ProjectId project;
  std::string key;
  int count = 1;            // Machines it asks for.
  int bodies = 1;           // How many different requests were sent with it.
  std::optional<int> body;  // The one that was accepted.
  std::optional<model::OperationId> operation;
  std::vector<model::VmId> vms;
  int created = 0;           // Answers that said so.
  bool is_rebuilt = false;   // Its record may have been read from labels.
  bool may_be_gone = false;  // Its record may have expired.
};

class Oracle {
 public:
  explicit Oracle(Stage& stage) : stage_(stage) {}

  // --- Clients
  KeyStory& Key(const model::ProjectId& project, const std::string& key);
  void CreateAnswered(KeyStory& key, int body, const service::Outcome& outcome);
  void DeleteAnswered(const model::VmId& vm, const service::Outcome& outcome);
  // Its mark, a label, was changed so; absent: whether it was is not known.
  void Patched(const model::VmId& vm, std::optional<std::string> mark);
  static constexpr const char* kMarkLabel = "mark";
  // Everything of before may have expired.
  void TimePassed();

  // --- The ledger
  void Accepted(const model::Operation& operation);
  void Taken(const model::Operation& operation);
  void Recorded(const ports::Advance& advance, ports::AdvanceOutcome outcome);
  void Renewed(std::span<const model::Lease> leases, std::span<const model::OperationId> lost);

  // --- Hosts
  void HostChanged(const model::HostId& host, const model::VmId& vm,
                   const std::optional<hypervisor::SimulatedDomain>& before,
                   const std::optional<hypervisor::SimulatedDomain>& after);
  // Called before anything else happens in the world.
  void EffectTookPlace(const Effect& effect);
  void Observed(const ports::Observation& observation);
  void SeedOrdered(const ports::SeedOrder& order);
  // Whose doing it is, what happens on hosts from now on: ours; the weather's, a power cut say,
  // after which every promise stands; or a person's beside us, after which that machine is nobody's
  // promise any more.
  enum class Hand { kOurs, kWeather, kMeddler };
  void SetHand(Hand hand) { hand_ = hand; }
  // An operator has declared it dead.
  void HostWasGivenUp(const model::HostId& host) { given_up_.insert(host); }
  // A machine that nobody made and nobody may remove.
  void Planted(const model::HostId& host, const model::VmId& vm) { planted_.insert({host, vm}); }
  // And one that is none of ours.
  void Strange(const model::VmId& vm) { strangers_.insert(vm); }
  // The ledger is an older copy of itself: what has no machine may be forgotten, what has one
  // never.
  void LedgerIsOlder();
  // It has been rebuilt, or never was behind.
  void LedgerIsWhole() { is_behind_ = false; }
  // Nothing is in flight: what is told now must be so, to the last word.
  void SetCalm(bool is_calm) { is_calm_ = is_calm; }
  bool WasMeddledWith(const model::VmId& vm) const { return meddled_.contains(vm); }

  // --- When nothing is in flight any more
  void Audit();
  // Whether Audit() would find nothing; breaks nothing.
  bool IsAllWell();
  bool IsAnyUnclaimed() const { return !planted_.empty(); }
  // Marks the rare places of every operation's story.
  void MarkWhatHappened();

  // What clients send as user data with a VM of that name.
  static std::string UserDataFor(const std::string& name) { return "SECRET for " + name; }

 private:
  void Break(std::string_view invariant, std::string what);
  void CheckComing(const model::HostId& host, const hypervisor::SimulatedDomain& domain);
  void CheckRefusal(const KeyStory& key, const model::Problem& problem);
  void CheckLive(const service::Answer& answer);
  bool IsUsable(const model::HostId& host) const;
  void AuditKeys();
  void AuditRows();
  void AuditRow(const model::Vm& vm);
  void AuditMark(const model::Vm& vm);
  bool HasFailedStart(const model::Vm& vm);
  void AuditHosts();
  void AuditSums();
  void AuditOperations();
  void AuditEvents();
  std::vector<model::Vm> AllRows();

  Stage& stage_;
  std::map<std::pair<std::string, std::string>, KeyStory> keys_;
  std::map<model::OperationId, std::int64_t> fences_;
  std::set<model::VmId> meddled_;
  Hand hand_ = Hand::kOurs;
  std::set<model::HostId> given_up_;
  bool is_calm_ = false;
  // What is not as it must be is counted, and may still become so.
  bool is_trial_ = false;
  int trial_breaches_ = 0;
  bool was_restored_ = false;
  bool is_behind_ = false;
  std::set<std::pair<model::HostId, model::VmId>> planted_;
  std::set<model::VmId> strangers_;
  std::map<model::VmId, std::optional<std::string>> marks_;
  // The last change of a domain: what its label said before, and when.
  model::VmId changed_;
  std::optional<model::Label> label_before_;
  std::uint64_t changed_turn_ = 0;
};

}  // namespace vmonce::sim
