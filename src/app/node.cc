#include "app/node.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "api/rest/rest.h"
#include "app/metrics.h"
#include "app/node_hosts.h"
#include "app/observers.h"
#include "app/service_metrics.h"
#include "base/file_identity.h"
#include "base/rfc3339.h"
#include "base/seal.h"
#include "engine/periodic.h"
#include "engine/worker_pool.h"
#include "http/server.h"
#include "hypervisor/image_files.h"
#include "ledger/sqlite_ledger.h"
#include "model/auth_limits.h"
#include "model/http_limits.h"
#include "model/image_limits.h"
#include "model/work_limits.h"
#include "service/authenticator.h"
#include "service/capacity.h"
#include "service/host_admin.h"
#include "service/intake.h"
#include "service/key_admin.h"
#include "service/queries.h"
#include "service/reconciler.h"
#include "service/tokens.h"
#include "service/vm_service.h"
#include "service/waiters.h"
#include "workflows/workflows.h"

namespace vmonce::app {
namespace {

namespace limits = model::limits;

model::ReplicaId NewReplicaId(Random& random) { return {fmt::format("r-{:016x}", random.Next())}; }

// A process that may open few files serves few connections, and keeps some files for the ledger,
// libvirt and guests: running out of them there would be worse than a 503.
std::size_t ConnectionsThatFit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return limits::kHttpConnections;
  const std::size_t kept = std::min<std::size_t>(limits::kHttpFilesKept, files.rlim_cur / 2);
  return std::min<std::size_t>(limits::kHttpConnections, files.rlim_cur - kept);
}

Status MakeStateDirectory(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  // Only the service's own user looks in: user data and consoles pass through here.
  if (error || chmod(dir.c_str(), 0700) != 0) {
    return Fail(
        ErrorCode::kRefused,
        fmt::format("the state directory {} cannot be made or is not ours ({}); make it, or "
                    "name another with [state] dir",
                    dir, error ? error.message() : "chmod failed"));
  }
  return {};
}

Milliseconds StrayAge(const LimitsConfig& limits, const workflows::Fleet& fleet) {
  return limits.lease_ttl + fleet.SettleTime();
}

}  // namespace

std::optional<http::TlsFiles> TlsFilesOf(const ServerConfig& server) {
  if (!server.HasTls()) return std::nullopt;
  return http::TlsFiles{server.tls_cert, server.tls_key, server.client_ca,
                        server.is_client_cert_required};
}

namespace {

service::Quotas QuotasOf(const Config& config) {
  const auto quota_of = [](const QuotaConfig& quota) {
    return service::ProjectQuota{quota.amounts, quota.keys};
  };
  std::map<model::ProjectId, service::ProjectQuota> named;
  for (const ProjectConfig& project : config.projects) {
    named.emplace(project.name, quota_of(project.quota));
  }
  return service::Quotas(quota_of(config.quota), std::move(named));
}

struct Meters {
  explicit Meters(Threads& threads) : metrics(threads), service(metrics) {}
  PrometheusMetrics metrics;
  ServiceMetrics service;
};

double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

struct Node::Parts {
  Parts(const Config& c, NodeDoors d, std::unique_ptr<Meters> m,
        std::unique_ptr<ledger::SqliteLedger> l, std::unique_ptr<ports::ImageStore> files,
        std::string key);

  void AddHost(const HostConfig& host, std::unique_ptr<hypervisor::HostThreads> door);
  // After the last host was added.
  void Wire();
  void WirePeriodic();
  void WireServer();
  void LookAtImageFiles();
  // Why nothing may be accepted now, if so.
  std::optional<model::Problem> Closed() const;
  std::optional<model::Problem> CreatesClosed() const;
  http::Router Routes();
  http::ServerOptions HttpOptions() const;
  void StartThreads();
  void StopWork();

  const Config config;
  NodeDoors doors;
  const model::ReplicaId replica;
  std::unique_ptr<Meters> meters;
  std::unique_ptr<ledger::SqliteLedger> ledger;
  std::unique_ptr<ports::ImageStore> image_files;
  Sealer sealer;
  service::Authenticator authenticator;
  service::Tokens tokens;
  std::vector<hypervisor::HostThreads*> host_doors;
  workflows::Fleet fleet;
  workflows::ImageWatch image_watch;
  workflows::WorkflowParts workflow_parts;
  engine::SagaTable sagas;
  engine::LeaseKeeper leases;
  engine::StepTimes step_times;
  service::Waiters waiters;
  MeteredWork observer;
  service::Capacity capacity;
  service::ImageCatalog images;
  service::ImageService image_store;
  service::Queries queries;

  // Made by Wire().
  std::unique_ptr<engine::WorkerPool> workers;
  std::unique_ptr<service::Intake> intake;
  std::unique_ptr<service::VmService> vms;
  std::unique_ptr<service::Reconciler> reconciler;
  std::unique_ptr<service::HostAdmin> host_admin;
  std::unique_ptr<service::KeyAdmin> key_admin;
  std::unique_ptr<Scrape> scrape;
  std::unique_ptr<engine::Periodic> sweeper;
  std::unique_ptr<engine::Periodic> duplicates;
  std::unique_ptr<engine::Periodic> image_sweeper;
  std::unique_ptr<engine::Periodic> image_watcher;
  std::unique_ptr<engine::Periodic> measuring;
  std::unique_ptr<engine::Periodic> token_refresh;
  std::unique_ptr<http::Server> server;
  std::unique_ptr<Thread> renewing;
};

Node::Parts::Parts(const Config& c, NodeDoors d, std::unique_ptr<Meters> m,
                   std::unique_ptr<ledger::SqliteLedger> l,
                   std::unique_ptr<ports::ImageStore> files, std::string key)
    : config(c),
      doors(d),
      replica(NewReplicaId(d.random)),
      meters(std::move(m)),
      ledger(std::move(l)),
      image_files(std::move(files)),
      sealer(std::move(key), d.random),
      authenticator(*ledger, d.clock, d.threads, c.AreTokensAlwaysRequired()),
      tokens(*ledger, authenticator, d.clock, d.random, d.logger),
      fleet(*ledger, d.threads, d.logger),
      image_watch(*ledger, &IdentityOf, d.threads, d.logger, c.images),
      workflow_parts{*ledger,      fleet,
                     sealer,       d.clock,
                     d.random,     {c.limits.stop_grace, limits::kObserveEvery, limits::kAskAgain},
                     &image_watch, ledger.get()},
      sagas(workflows::AllSagas(workflow_parts)),
      leases(*ledger, d.clock, d.threads, d.logger,
             {c.limits.lease_ttl, c.limits.LeaseRenewEvery()}),
      waiters(d.clock, d.threads),
      observer(meters->service, waiters, d.clock),
      capacity(*ledger, d.clock, d.threads, limits::kCapacityAgeMost),
      images(d.threads, c.images),
      image_store({*ledger, *image_files, images, d.clock, d.random, d.threads, d.logger}),
      queries(*ledger, fleet, images, c.retention) {}

void Node::Parts::AddHost(const HostConfig& host, std::unique_ptr<hypervisor::HostThreads> door) {
  host_doors.push_back(door.get());
  fleet.Add(HostPlanOf(host), std::move(door));
}

void Node::Parts::Wire() {
  fleet.OnCapacityChange([this] { capacity.Forget(); });
  const engine::WorkerBounds bounds{{limits::kStepBackoffBase, limits::kStepBackoffCap},
                                    limits::kHeldRetry,
                                    fleet.SettleTime(),
                                    limits::kStepFailures,
                                    limits::kUndoFailuresStuck,
                                    limits::kRecordWithin};
  const engine::WorkerParts parts{*ledger,      sagas,        leases,  observer, doors.clock,
                                  doors.random, doors.logger, replica, bounds,   &step_times};
  workers = std::make_unique<engine::WorkerPool>(
      parts, doors.threads,
      engine::PoolBounds{config.limits.workers, limits::kPollDue, fleet.SettleTime()});
  intake = std::make_unique<service::Intake>(
      *ledger, *workers, replica, config.limits.lease_ttl, doors.clock, doors.threads, doors.logger,
      service::IntakeBounds{limits::kIntakeBatch, limits::kIntakeQueue});
  vms = std::make_unique<service::VmService>(
      service::ServiceParts{*ledger, *intake, waiters, *workers, images, sealer, doors.clock,
                            doors.random, doors.threads, doors.logger,
                            [this] { return capacity.Total(); }, replica,
                            [this] { return Closed(); },
                            [this](const model::VmSpec& spec) { return fleet.WhyNotOffered(spec); },
                            [this] { return CreatesClosed(); }, &ledger->Watch()},
      service::ServiceSettings{QuotasOf(config), config.limits.max_backlog, limits::kPreferWait,
                               config.retention});
  reconciler = std::make_unique<service::Reconciler>(
      workflow_parts, doors.threads, doors.logger,
      workflows::ReconcileSettings{config.limits.orphan_grace, StrayAge(config.limits, fleet),
                                   limits::kStraySightings, limits::kSweepRemovalsMin,
                                   limits::kSweepRemovalsPercent},
      config.limits.reconcile_every);
  host_admin = std::make_unique<service::HostAdmin>(fleet, queries, *reconciler);
  key_admin = std::make_unique<service::KeyAdmin>(*ledger, doors.logger);
  scrape =
      std::make_unique<Scrape>(meters->service, *ledger, fleet, *vms, *reconciler, doors.threads);
  WirePeriodic();
  WireServer();
}

void Node::Parts::WirePeriodic() {
  sweeper = std::make_unique<engine::Periodic>(
      "sweep", limits::kSweepEvery,
      [this] {
        const Result<ports::SweepCounts> swept =
            ledger->Sweep(config.retention, limits::kSweepRows);
        if (!swept) doors.logger.Warning("sweep_failed", {{"cause", swept.error().detail}});
      },
      doors.clock, doors.threads);
  duplicates = std::make_unique<engine::Periodic>(
      "duplicates", limits::kFlushDuplicatesEvery, [this] { vms->FlushDuplicates(); }, doors.clock,
      doors.threads);
  image_sweeper = std::make_unique<engine::Periodic>(
      "image-sweep", limits::kImageSweepEvery,
      [this] {
        // A ledger that is older than the machines may not know the files that they stand on.
        if (fleet.HasComparedAll()) image_store.Sweep();
      },
      doors.clock, doors.threads);
  image_watcher = std::make_unique<engine::Periodic>(
      "image-watch", config.limits.reconcile_every, [this] { LookAtImageFiles(); }, doors.clock,
      doors.threads);
  // The io thread asks for it with every create, and may not wait for the ledger.
  measuring = std::make_unique<engine::Periodic>(
      "capacity", limits::kCapacityAge,
      [this] {
        // An error shows where the ledger is asked next.
        (void)capacity.Refresh();
      },
      doors.clock, doors.threads);
  token_refresh = std::make_unique<engine::Periodic>(
      "tokens", limits::kTokenRefresh,
      [this] {
        const Status refreshed = authenticator.Refresh();
        if (refreshed) return;
        doors.logger.Warning("tokens_not_read", {{"cause", refreshed.error().detail}});
      },
      doors.clock, doors.threads);
}

void Node::Parts::LookAtImageFiles() {
  image_watch.Check();
  std::map<std::string, std::int64_t> changed = image_watch.Changed();
  meters->service.images_changed.Set(static_cast<double>(changed.size()));
  images.SetChanged(std::move(changed));
}

void Node::Parts::WireServer() {
  // Only the io thread calls it.
  auto by_route = std::make_shared<std::map<std::string, Histogram*, std::less<>>>();
  server = std::make_unique<http::Server>(
      HttpOptions(), http::ServerContext{doors.clock, doors.random, doors.threads, doors.logger},
      Routes(), [this, by_route](const http::Observation& seen) {
        auto found = by_route->find(seen.route);
        if (found == by_route->end()) {
          Histogram& histogram = meters->service.HttpRequestDuration(seen.route);
          found = by_route->emplace(std::string(seen.route), &histogram).first;
        }
        found->second->Observe(Seconds(seen.duration));
      });
}

std::optional<model::Problem> Node::Parts::Closed() const {
  model::Problem problem;
  switch (fleet.Age()) {
    case workflows::LedgerAge::kCurrent: return std::nullopt;
    case workflows::LedgerAge::kUntold:
      problem.code = "starting";
      problem.detail =
          "The service has started and asks its hosts what is there. Nothing happened; send the "
          "same request again.";
      problem.retry_after = std::chrono::seconds(1);
      return problem;
    case workflows::LedgerAge::kPartly: return std::nullopt;  // See CreatesClosed().
    case workflows::LedgerAge::kBehind: break;
  }
  problem.code = "ledger_behind";
  problem.detail =
      "Machines on the hosts are newer than this ledger: an older copy of it was restored. "
      "Nothing is accepted or removed until the newest copy is back, or `vmonce rebuild` has read "
      "the machines in.";
  problem.retry_after = model::limits::kRetryAfterMax;
  return problem;
}

std::optional<model::Problem> Node::Parts::CreatesClosed() const {
  if (fleet.Age() != workflows::LedgerAge::kPartly) return std::nullopt;
  model::Problem problem;
  problem.code = "ledger_behind";
  problem.detail =
      "The ledger was rebuilt without some host (GET /v1/hosts tells which), and this key may have "
      "a machine there. Nothing was created. Creates are taken again when `vmonce rebuild` has "
      "read that host, or when an operator declares it dead.";
  problem.retry_after = model::limits::kRetryAfterMax;
  return problem;
}

http::Router Node::Parts::Routes() {
  http::Router router;
  rest::RegisterRest(
      router,
      rest::RestParts{*vms, queries, image_store, *reconciler, *host_admin, *key_admin,
                      authenticator, tokens, sealer, doors.clock, doors.threads, doors.logger,
                      service::Rate{config.auth.rate, config.auth.burst},
                      rest::Capabilities{VMONCE_VERSION, config.retention, QuotasOf(config),
                                         config.limits.max_backlog, limits::kPreferWait},
                      [this] {
                        scrape->UpdateHttp(*server);
                        scrape->Update();
                        return meters->metrics.Render();
                      },
                      [this](model::OperationKind kind, int step) -> std::string {
                        const engine::Saga* saga = sagas.Find(kind);
                        if (saga == nullptr || step < 0) return "";
                        if (step >= static_cast<int>(saga->steps.size())) return "";
                        return std::string(saga->steps[static_cast<std::size_t>(step)].name);
                      }});
  return router;
}

http::ServerOptions Node::Parts::HttpOptions() const {
  http::ServerOptions options;
  options.address = config.server.address;
  options.port = config.server.port;
  for (const std::string& name : config.server.allowed_hosts) options.allowed_hosts.push_back(name);
  options.max_header_bytes = limits::kHeaderBytes;
  options.max_body_bytes = limits::kBodyBytes;
  options.max_connections = ConnectionsThatFit();
  // Everybody comes from a proxy's one address.
  options.max_connections_per_address =
      config.server.behind_tls_proxy ? 0 : limits::kHttpConnectionsPerAddress;
  options.max_handshakes = limits::kHttpHandshakes;
  options.handshake_timeout = limits::kHttpHandshakeTimeout;
  options.tls = TlsFilesOf(config.server);
  options.header_timeout = limits::kHttpHeaderTimeout;
  options.body_timeout = limits::kHttpBodyTimeout;
  options.idle_timeout = limits::kHttpIdleTimeout;
  options.stop_timeout = limits::kHttpStopTimeout;
  options.pool_threads = limits::kHttpPoolThreads;
  options.max_pool_queue = limits::kHttpPoolQueue;
  return options;
}

void Node::Parts::StartThreads() {
  waiters.Start();
  renewing = doors.threads.Spawn("leases", [this](std::stop_token stop) { leases.Run(stop); });
  workers->Start();
  intake->Start();
  reconciler->Start();
  sweeper->Start();
  duplicates->Start();
  image_sweeper->Start();
  image_watcher->Start();
  measuring->Start();
  token_refresh->Start();
}

// Requests first, so that nothing new is promised; then the waits, so that every answer leaves;
// then the work.
void Node::Parts::StopWork() {
  waiters.Stop();
  server->Stop();
  intake->Stop();
  duplicates->Stop();
  measuring->Stop();
  vms->FlushDuplicates();
  reconciler->Stop();
  sweeper->Stop();
  image_sweeper->Stop();
  image_watcher->Stop();
  token_refresh->Stop();
  workers->Stop();
  if (renewing) renewing->RequestStop();
  renewing.reset();
}

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::Open(const Config& config, NodeDoors doors) {
  if (const std::optional<http::TlsFiles> files = TlsFilesOf(config.server)) {
    const auto loaded = http::TlsContext::Load(*files, doors.clock.Now());
    if (!loaded) return std::unexpected(loaded.error());
  }
  if (const Status made = MakeStateDirectory(config.state.dir); !made) {
    return std::unexpected(made.error());
  }
  auto meters = std::make_unique<Meters>(doors.threads);
  // libvirt reads the environment when its first door is made, so hosts come before other
  // threads.
  Result<HostDoors> host_doors =
      MakeHostDoors(config, doors,
                    [&meters = *meters](std::string_view call, std::string_view outcome,
                                        std::chrono::nanoseconds took) {
                      meters.service.HypervisorCallDuration(call, outcome).Observe(Seconds(took));
                    });
  if (!host_doors) return std::unexpected(host_doors.error());

  ledger::SqliteLedgerOptions options;
  options.path = config.state.LedgerPath();
  options.page_cache_kib = config.ledger.cache_mib * 1024;
  options.max_batch = limits::kCommitBatch;
  options.on_write = [&meters = *meters](std::chrono::nanoseconds took) {
    meters.service.ledger_operation_duration.Observe(Seconds(took));
  };
  Result<std::unique_ptr<ledger::SqliteLedger>> ledger =
      ledger::SqliteLedger::Open(options, doors.clock, doors.random, doors.threads, doors.logger);
  if (!ledger) return Context("ledger", ledger.error());
  Result<std::string> key = LoadOrCreateKeyFile(config.state.KeyPath(), doors.random);
  if (!key) return Context("key file", key.error());

  Result<std::unique_ptr<hypervisor::FileImageStore>> files = hypervisor::FileImageStore::Open(
      {config.state.ImagesPath(), limits::kImageSpareBytes}, doors.clock, doors.threads);
  if (!files) return Context("image store", files.error());

  auto parts = std::make_unique<Parts>(config, doors, std::move(meters), std::move(*ledger),
                                       std::move(*files), std::move(*key));
  if (const Status loaded = parts->image_store.Load(); !loaded) {
    return Context("image store", loaded.error());
  }
  for (std::size_t i = 0; i < host_doors->size(); ++i) {
    parts->AddHost(config.hosts[i], std::move((*host_doors)[i]));
  }
  parts->Wire();
  // tidy: allow raw-new: the constructor is private
  return std::unique_ptr<Node>(new Node(std::move(parts)));
}

Status Node::Start() {
  // Before anybody can ask.
  if (const Status read = parts_->authenticator.Refresh(); !read) {
    return Context("tokens", read.error());
  }
  parts_->LookAtImageFiles();
  if (const Status listening = parts_->server->Start(); !listening) {
    Error error = listening.error();
    error.detail += "; stop what uses it, or choose another with [server] listen";
    return std::unexpected(std::move(error));
  }
  parts_->StartThreads();
  TellCertificate();
  return {};
}

bool Node::Stop() {
  parts_->StopWork();
  return std::ranges::none_of(parts_->host_doors,
                              [](const hypervisor::HostThreads* door) { return door->AnyOut(); });
}

bool Node::IsTakingRequests(Milliseconds within) const {
  return parts_->doors.clock.Monotonic() - parts_->server->LastTurn() <= within;
}

void Node::ReloadTls() {
  Logger& logger = parts_->doors.logger;
  const Status reloaded = parts_->server->ReloadTls();
  if (!reloaded) {
    logger.Error("tls_not_reloaded", {{"cause", reloaded.error().detail},
                                      {"effect", "the certificate from before stays in use"}});
    return;
  }
  TellCertificate();
}

void Node::TellCertificate() {
  const std::optional<Time> expires = parts_->server->CertificateExpires();
  if (!expires) return;
  const bool is_soon = *expires < parts_->doors.clock.Now() + limits::kCertificateWarning;
  parts_->doors.logger.Write(is_soon ? LogLevel::kWarning : LogLevel::kInfo, "tls_certificate",
                             {{"expires", FormatRfc3339(*expires)}});
}

std::string Node::Url() const {
  const std::string& address = parts_->config.server.address;
  const bool is_ipv6 = address.contains(':');
  return fmt::format("{}://{}{}{}:{}", parts_->config.server.HasTls() ? "https" : "http",
                     is_ipv6 ? "[" : "", address, is_ipv6 ? "]" : "", parts_->server->port());
}

std::string Node::LedgerId() const { return parts_->ledger->Id().value; }

}  // namespace vmonce::app
