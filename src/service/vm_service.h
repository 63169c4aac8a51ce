// What every face calls for what changes things: the gate of protocol section 5, steps 6 to 8, and
// the answers of section 6. A face has authenticated the caller, bounded and parsed the request,
// and translates the answer.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/seal.h"
#include "model/idempotency.h"
#include "model/intent.h"
#include "model/problem.h"
#include "model/vm.h"
#include "ports/ledger.h"
#include "ports/ledger_watch.h"
#include "service/caller.h"
#include "service/images.h"
#include "service/intake.h"
#include "service/known_keys.h"
#include "service/quotas.h"
#include "service/waiters.h"

namespace vmonce::service {

// What every mutating request has, whatever its face.
struct Asked {
  Caller caller;
  std::optional<model::IdempotencyKey> key;
  // As sent: what the fingerprint is of. Its body may hold secrets and is not kept.
  model::RequestImage request;
  // The same with every secret replaced by its MAC: what is kept.
  model::RequestImage redacted;
  std::string face;
  // How long the answer may wait for the operation's end; zero: not at all. Capped by the service.
  std::chrono::seconds wait{0};
};

struct CreateRequest {
  Asked asked;  // Its key is required.
  model::CreateIntent intent;
  // When the client says that it sent this for the first time. A key that is not known is only
  // accepted within limits::kFirstSentTolerance of it: what was sent long ago may have been known.
  std::optional<Time> first_sent;
  std::string user_data;  // Decoded, clear text; sealed before it is written anywhere.
};

struct ChangeRequest {
  enum class Kind { kDelete, kStart, kStop, kReboot, kUpdate };
  Asked asked;
  Kind kind = Kind::kDelete;
  model::VmId vm;
  std::optional<std::int64_t> if_version;
  bool force = false;                                        // kStop: power off at once.
  std::optional<std::string> name;                           // kUpdate.
  std::optional<std::map<std::string, std::string>> labels;  // kUpdate.
  std::optional<model::Desired> desired;                     // kUpdate: a start or a stop, too.
  std::optional<model::RestartPolicy> restart;               // kUpdate.
};

// What a replay was read from, and when: it is what a replay now would say while all of it stands.
struct Reading {
  ports::Moment since;
  model::OperationId operation;  // Has succeeded, which nothing changes while its VMs have rows.
  std::vector<model::VmId> vms;  // All of the operation's.
};

struct Answer {
  bool is_replay = false;  // The key, or the deletion, was known before.
  // Absent for an update without a key, and for a VM deleted so long ago that the record is gone.
  std::optional<model::Operation> operation;
  std::vector<model::Vm> vms;   // By index, live.
  std::optional<Time> expires;  // When the record will become a tombstone, as things stand.
  // Of the replay of a create that has succeeded: see VmService::Repeat().
  std::optional<Reading> reading;
};
using Outcome = std::expected<Answer, model::Problem>;
using Done = std::function<void(Outcome)>;

// What a create would do now, without doing it.
struct DryRun {
  enum class Would { kCreate, kReplay, kNewAttempt, kMismatch, kExpired, kRefuse };
  Would would = Would::kCreate;
  std::optional<model::Problem> problem;  // kMismatch, kExpired, kRefuse.
  std::optional<model::Operation> operation;
  std::vector<model::Vm> vms;
};

struct ServiceSettings {
  Quotas quotas;
  std::int64_t max_backlog = 0;
  std::chrono::seconds wait_cap{};
  model::RetentionPolicy retention;
  std::size_t known_keys = model::limits::kReplayCacheEntries;  // Places (service/known_keys.h).
};

// All of it outlives the service.
struct ServiceParts {
  ports::Ledger& ledger;
  Intake& intake;
  Waiters& waiters;
  engine::WorkerPool& workers;
  const ImageCatalog& images;
  const Sealer& sealer;
  Clock& clock;
  Random& random;
  Threads& threads;
  Logger& logger;
  // What all usable hosts together may reserve now. Quick: it is asked for every create.
  std::function<Result<model::Resources>()> capacity;
  model::ReplicaId replica;
  // Why nothing may be accepted now, if so. Quick.
  std::function<std::optional<model::Problem>()> closed;
  // Why no host can make a VM of this spec, whatever room it has, if so. Quick. May be empty.
  std::function<std::optional<std::string>(const model::VmSpec&)> not_offered;
  // Why no create that is not known yet may be accepted, if so, while all else goes on. Quick. May
  // be empty.
  std::function<std::optional<model::Problem>()> creates_closed;
  // Null: no answer is ever given again from memory.
  const ports::LedgerWatch* watch = nullptr;
};

// Thread-safe. Answers come on a thread of the service, once each, also when the caller is gone.
class VmService {
 public:
  VmService(const ServiceParts& parts, ServiceSettings settings);

  void Create(CreateRequest request, Done done);
  void Change(ChangeRequest request, Done done);

  // True: the answer that came with `reading` is the answer to the same request now, and was
  // counted as one more duplicate. The caller was authorised now, as for any request. Quick: asks
  // no ledger.
  bool Repeat(const Reading& reading);

  // Marks every VM of an unfinished create for deletion. It ends as cancelled, or, when some of a
  // batch were ready before, as what they made of it. When a mark cannot be made the problem is
  // answered; sending the same again is safe.
  void Cancel(Asked asked, model::OperationId operation, Done done);

  // Blocks on reads of the ledger.
  std::expected<DryRun, model::Problem> WouldCreate(const CreateRequest& request);

  // Lines about duplicates served are collected and written now and then.
  void FlushDuplicates();

  // How many requests ended how: "created", "replayed", "joined", "mismatch", ... since the start.
  std::map<std::string, std::int64_t> OutcomeCounts() const;

 private:
  struct Pending;
  using PendingPointer =
      std::shared_ptr<Pending>;  // Shared: it travels through callbacks on several threads.

  PendingPointer NewPending(Asked asked, Done done) const;
  std::expected<ports::Submission, model::Problem> BuildCreate(const CreateRequest& request,
                                                               const model::Image& image,
                                                               const Pending& pending);
  ports::Submission BuildChange(const ChangeRequest& request, const Pending& pending);
  model::Operation NewOperation(const Pending& pending, model::OperationKind kind);
  void Claim(const CreateRequest& request, const model::Image& image,
             const PendingPointer& pending);
  // Why this create cannot be accepted now, apart from what its claim decides. `image` is what it
  // names, if that is known.
  std::optional<model::Problem> WhyNot(const CreateRequest& request,
                                       const std::optional<model::Image>& image) const;
  void Submit(ports::Submission submission, const PendingPointer& pending);
  void CancelNow(const PendingPointer& pending, const model::OperationId& id);
  void MarkAll(const PendingPointer& pending, const model::Operation& operation);
  // The VM that holds the name in the project now; absent when it is free.
  Result<std::optional<model::Vm>> HolderOf(const model::ProjectId& project,
                                            const std::string& name);

  void Accepted(const PendingPointer& pending, ports::AcceptOutcome outcome);
  void AnswerFound(const PendingPointer& pending,
                   std::variant<ports::Known, ports::KnownTombstone> found);
  void AnswerKnown(const PendingPointer& pending, ports::Known known, bool may_revive);
  void Revive(const PendingPointer& pending, const model::Operation& operation);
  // The answer now, or when the operation has ended, or when the wait is over.
  void AnswerOrWait(const PendingPointer& pending, Answer answer, std::string_view counted_as);
  // The answer as the ledger has it now.
  Outcome ReadAnswer(const model::OperationId& id, bool is_replay);
  void AnswerLive(const PendingPointer& pending, const model::OperationId& id, bool is_replay);
  Outcome Complete(Answer answer) const;
  void Reply(const PendingPointer& pending, Outcome outcome, std::string_view counted_as);

  std::expected<DryRun, model::Problem> WouldReplay(
      const Pending& pending, const std::variant<ports::Known, ports::KnownTombstone>& found) const;
  model::Problem MismatchOf(const Asked& asked, const model::Operation& operation) const;
  std::optional<Reading> ReadingOf(const Pending& pending, const ports::Known& known) const;
  void Count(std::string_view outcome);
  void NoteDuplicate(const model::OperationId& operation);

  const ServiceParts parts_;
  const ServiceSettings settings_;
  KnownKeys known_keys_;
  std::unique_ptr<Monitor> monitor_;
  std::unordered_map<model::OperationId, int, UuidHash> duplicates_ GUARDED_BY(*monitor_);
  std::map<std::string, std::int64_t> outcomes_ GUARDED_BY(*monitor_);
};

}  // namespace vmonce::service
