// Every bound of the service, each with its reason. What is published to callers stands in GET
// /v1/capabilities.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace vmonce::model::limits {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// --- Keys and requests
// What the widest known client uses (Stripe's limit).
inline constexpr std::size_t kKeyBytes = 255;
// Enough to recognise one's own key, too little to guess it.
inline constexpr std::size_t kKeyPrefixBytes = 8;
// 64 KiB of user data in base64 and room for everything else.
inline constexpr std::size_t kBodyBytes = 1 << 20;
inline constexpr std::size_t kHeaderBytes = 16 << 10;
// cloud-init's own sources stop between 16 and 64 KiB.
inline constexpr std::size_t kUserDataBytes = 64 << 10;
// A DNS label (RFC 1123).
inline constexpr std::size_t kNameBytes = 63;
// RFC 1123 and RFC 1035: what DNS can carry.
inline constexpr std::size_t kHostnameBytes = 253;
// A file name's length.
inline constexpr std::size_t kImageNameBytes = 255;
inline constexpr std::size_t kSshKeys = 32;
// RSA 16384 fits.
inline constexpr std::size_t kSshKeyBytes = 8 << 10;
inline constexpr std::size_t kLabels = 32;
inline constexpr std::size_t kLabelKeyBytes = 63;
inline constexpr std::size_t kLabelValueBytes = 255;
// An operation's items live in one row; 100 keep it under 32 KiB.
inline constexpr int kBatchCount = 100;
inline constexpr int kCpus = 128;
inline constexpr int kMemoryMib = 1 << 20;
inline constexpr int kMinMemoryMib = 32;
inline constexpr int kDiskGib = 16 << 10;
// A mismatch names at most so many places.
inline constexpr std::size_t kDifferingPointers = 16;
inline constexpr int kPageItems = 100;
inline constexpr int kPageItemsDefault = 50;
// The longest `Prefer: wait`; longer asks are capped.
inline constexpr seconds kPreferWait{120};
// Retry-After is always within [1 s, this].
inline constexpr seconds kRetryAfterMax{60};

// --- Intake
// Claims of one transaction: beyond it latency grows, not throughput.
inline constexpr std::size_t kIntakeBatch = 256;
// Waiting claims; beyond it 503, nothing consumed.
inline constexpr std::size_t kIntakeQueue = 8192;
// Accepted and unfinished operations (setting).
inline constexpr std::int64_t kMaxBacklog = 100'000;
// Keys that are known to have a record: 0.8 MiB of marks.
inline constexpr std::size_t kReplayCacheEntries = 100'000;
// Operations whose duplicates are told per flush.
inline constexpr std::size_t kDuplicateNotes = 10'000;
inline constexpr Milliseconds kFlushDuplicatesEvery{1'000};

// --- The ledger's files
// Reads take tens of microseconds; two cores.
inline constexpr int kLedgerReaders = 3;
// The indexes of a million records.
inline constexpr int kLedgerPageCacheKib = 64 << 10;
// Calls that share a commit; intake is one call.
inline constexpr std::size_t kCommitBatch = 64;
// 4 MiB: SQLite's own default.
inline constexpr int kCheckpointPages = 1000;
// 64 MiB: from here on the writer checkpoints itself.
inline constexpr int kWalPages = 16 << 10;
// A person's sqlite3 shell may hold the file.
inline constexpr Milliseconds kLedgerBusy{2'000};
// Of one operation; lines of duplicates stop here.
inline constexpr int kTimelineLines = 1000;

// --- Leases and work
// A crashed replica's work waits at most so long.
inline constexpr Milliseconds kLeaseTtl{15'000};
// A third: two renewals may be lost.
inline constexpr Milliseconds kLeaseRenewEvery{5'000};
// Blocking on hypervisor calls, not on the CPU.
inline constexpr int kWorkers = 8;
// How often workers look for due work nobody announced.
inline constexpr Milliseconds kPollDue{500};
inline constexpr Milliseconds kStepBackoffBase{250};
inline constexpr Milliseconds kStepBackoffCap{30'000};
// Proven no-effect failures of a step before undoing.
inline constexpr int kStepFailures = 5;
// Failures of an undo before a person is told; it goes on.
inline constexpr int kUndoFailuresStuck = 8;
// Looks without an answer before a person is told.
inline constexpr int kVerifyFailuresStuck = 8;
// A VM held by another operation is asked for again.
inline constexpr Milliseconds kHeldRetry{200};
// While a guest shuts down.
inline constexpr Milliseconds kObserveEvery{200};
// A guest that still boots misses the first asking.
inline constexpr Milliseconds kAskAgain{3'000};
// A guest has so long to shut down before it is forced (setting).
inline constexpr Milliseconds kStopGrace{20'000};

// --- Hypervisor
// Calls out to one host at once.
inline constexpr int kHostThreads = 6;
// Destroying a frozen QEMU took 12 s; 45 s is the least.
inline constexpr Milliseconds kCallDeadline{60'000};
inline constexpr Milliseconds kLookDeadline{20'000};
// The first embedded open probes capabilities for seconds.
inline constexpr Milliseconds kConnectDeadline{60'000};
inline constexpr Milliseconds kReconnectEvery{5'000};
// We hold the root's lock: nobody else's call can be out.
inline constexpr Milliseconds kSettleEmbedded{0};
inline constexpr Milliseconds kSettleLocalDaemon{30'000};
inline constexpr Milliseconds kSettleRemote{300'000};
// One instruction; a nested /dev/kvm may open and then hang.
inline constexpr Milliseconds kKvmProbe{3'000};
// qemu-img on a slow disk; overlays take milliseconds.
inline constexpr Milliseconds kToolDeadline{120'000};
inline constexpr std::size_t kToolOutputBytes = 64 << 10;
// One answer of the console route.
inline constexpr std::size_t kConsoleBytes = 1 << 20;
inline constexpr std::size_t kMarkerBytes = 4 << 10;

// Kept of a guest's serial output; beyond it the oldest half goes.
inline constexpr std::size_t kConsoleFileBytes = 16 << 20;
// A seed image: user data, keys and an ISO 9660 file system around them.
inline constexpr std::size_t kSeedBytes = 8 << 20;
// Sockets beneath it may have 107 bytes; libvirt adds up to 59.
inline constexpr std::size_t kEmbedRootBytes = 48;
// Changes of a simulated host that a lagging list can look back on.
inline constexpr std::size_t kSimulatedHistory = 4096;

// --- Hosts
// Capacity when the configuration names none.
inline constexpr int kVmsPerHost = 1000;
// Guests are idle most of the time; memory is not shared so.
inline constexpr int kCpuOvercommit = 4;
// Of the sum that claims are measured against.
inline constexpr Milliseconds kCapacityAge{1'000};
// The rest is the host's own and QEMU's overhead.
inline constexpr int kMemoryPercent = 85;

// --- Reconciler and retention
inline constexpr Milliseconds kReconcileEvery{30'000};
inline constexpr Milliseconds kSweepEvery{60'000};
// A deleted VM's machine that reappears is kept so long (setting).
inline constexpr hours kOrphanGrace{24};
// A sweep that would remove more than max(this, 10 %) stops.
inline constexpr int kSweepRemovalsMin = 3;
inline constexpr int kSweepRemovalsPercent = 10;
// A stray is acted on when seen in so many sweeps in a row.
inline constexpr int kStraySightings = 2;
// Expired records per transaction.
inline constexpr int kSweepRows = 500;
// After the VM's deletion (setting; at least a day).
inline constexpr hours kRetention{30 * 24};
inline constexpr hours kRetentionMin{24};
inline constexpr hours kTombstoneRetention{365 * 24};
// Records without a resource of their own: PATCH, power.
inline constexpr hours kKeyTtl{24};
// Without a sink, events are kept so long.
inline constexpr hours kOutboxRetention{7 * 24};

// --- Configuration
// Thousands of hosts and images fit.
inline constexpr std::size_t kConfigBytes = 1 << 20;
// What a person mends before the next try.
inline constexpr std::size_t kConfigMistakes = 20;
// Each has its own threads and connection.
inline constexpr std::size_t kConfigHosts = 256;
inline constexpr std::size_t kConfigImages = 1000;
inline constexpr std::size_t kImageAliases = 32;
// x86 Linux cuts a longer one silently.
inline constexpr std::size_t kCmdlineBytes = 2047;
inline constexpr std::size_t kAllowedHosts = 64;
// A thread each.
inline constexpr int kWorkersMax = 256;
inline constexpr std::int64_t kMaxBacklogMax = 10'000'000;
// The indexes of some hundred thousand operations.
inline constexpr int kLedgerCacheMib = 64;
inline constexpr int kLedgerCacheMibMin = 1;
inline constexpr int kLedgerCacheMibMax = 64 << 10;
// Below, a busy disk alone loses leases.
inline constexpr Milliseconds kLeaseTtlMin{500};
inline constexpr Milliseconds kLeaseTtlMax{600'000};
inline constexpr Milliseconds kStopGraceMax{3'600'000};
// A sweep lists the whole host.
inline constexpr Milliseconds kReconcileEveryMin{100};
inline constexpr Milliseconds kReconcileEveryMax{3'600'000};
inline constexpr hours kOrphanGraceMax{365 * 24};
inline constexpr hours kRetentionMax{10 * 365 * 24};
// Clients retry for minutes.
inline constexpr hours kKeyTtlMin{1};
inline constexpr int kSimulatedLatencyMs = 60'000;
inline constexpr int kHostCpusMax = 1 << 16;
inline constexpr std::int64_t kHostMemoryMibMax = 1 << 30;
inline constexpr std::int64_t kHostDiskGibMax = 1 << 30;
inline constexpr std::int64_t kHostVmsMax = 100'000;
// The default quota keeps a runaway script from filling a rack; one machine is full long before.
inline constexpr std::int64_t kQuotaVms = 1'000;
inline constexpr std::int64_t kQuotaCpus = 4'000;
inline constexpr std::int64_t kQuotaMemoryMib = 4 << 20;
inline constexpr std::int64_t kQuotaDiskGib = 100'000;
// Sums of them stay far from 2^63.
inline constexpr std::int64_t kQuotaMax = 1LL << 40;

// --- Metrics
// Of one name; labels are few by design.
inline constexpr std::size_t kMetricSeries = 512;

// --- HTTP
// Blocking reads; SQLite answers in tens of microseconds.
inline constexpr int kHttpPoolThreads = 4;
inline constexpr std::size_t kHttpPoolQueue = 1024;
inline constexpr std::size_t kHttpConnections = 10'000;
inline constexpr seconds kHttpHeaderTimeout{10};
inline constexpr seconds kHttpBodyTimeout{30};
// Above what load balancers keep (60 s), so that they close first.
inline constexpr seconds kHttpIdleTimeout{75};
inline constexpr seconds kHttpStopTimeout{10};

// --- Client
// A host that does not even answer the SYN.
inline constexpr Milliseconds kClientConnect{5'000};
// One try, besides what Prefer: wait asks.
inline constexpr Milliseconds kClientAttempt{30'000};
// All tries of one change: a restart fits.
inline constexpr Milliseconds kClientBudget{120'000};
// All tries of a read: a person waits.
inline constexpr Milliseconds kClientReadBudget{10'000};
inline constexpr Milliseconds kClientBackoffBase{200};
inline constexpr Milliseconds kClientBackoffCap{10'000};
// A second bound, should a clock stand still.
inline constexpr int kClientAttempts = 500;
// How long a command waits without --timeout.
inline constexpr Milliseconds kClientWait{600'000};
// Far from where nanoseconds overflow.
inline constexpr hours kClientWaitMax{365 * 24};
// The first answer; then progress is shown.
inline constexpr seconds kClientPreferWait{1};
// A tiny guest is ready in four seconds.
inline constexpr Milliseconds kClientPollFast{250};
inline constexpr Milliseconds kClientPollSlow{1'000};
// Ten seconds; who waits longer sees seconds pass.
inline constexpr int kClientFastPolls = 40;
// A page of a hundred VMs is 200 KiB.
inline constexpr std::size_t kClientAnswerBytes = 16 << 20;
// Of one list: 100,000 VMs.
inline constexpr int kClientPages = 1'000;
// Unfinished intents looked through.
inline constexpr std::size_t kClientIntents = 1'000;
// An older one is continued only when asked for.
inline constexpr hours kClientIntentReuse{24};
// What a killed save left behind is removed then.
inline constexpr hours kClientStaleTemporary{1};
// Shown with a failure.
inline constexpr std::size_t kClientConsoleTailLines = 12;
// Read for that tail; consoles rotate.
inline constexpr std::size_t kClientConsoleBytes = 8 << 20;

}  // namespace vmonce::model::limits
