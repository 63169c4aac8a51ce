#include "hypervisor/libvirt_sessions.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/limits.h"

namespace vmonce::hypervisor {

LibvirtSessions::LibvirtSessions(LibvirtOptions options, Clock& clock, Threads& threads,
                                 Logger& logger)
    : options_(std::move(options)),
      clock_(clock),
      threads_(threads),
      logger_(logger),
      opening_(threads.NewMonitor()),
      monitor_(threads.NewMonitor()) {}

LibvirtSessions::~LibvirtSessions() {
  MonitorLock lock(*monitor_);
  kept_.clear();  // Before the event loop, which closing may need.
}

bool LibvirtSessions::IsInProcess() const {
  return options_.uri.kind == HostKind::kEmbedded || options_.uri.kind == HostKind::kTest;
}

DomainType LibvirtSessions::Type() const {
  MonitorLock lock(*monitor_);
  CHECK(type_.has_value());
  return *type_;
}

Result<ports::HostFacts> LibvirtSessions::Connect(const model::HostMarker& marker,
                                                  ports::MarkerPolicy policy) {
  MonitorLock opening(*opening_);
  auto kept = TakeOrOpen();
  if (!kept) return Failed(kept.error());
  // The marker is read even on a live connection: the disk beneath it may be another one now.
  auto facts = Prove(*kept->session, marker, policy);
  kept->proven = 0;
  if (facts) {
    MonitorLock lock(*monitor_);
    if (marker_ != marker) ++round_;  // The others were proven by the one before.
    marker_ = marker;
    kept->proven = round_;
  } else {
    facts = Failed(facts.error());  // Before anybody can take it.
  }
  Keep(*std::move(kept));
  return facts;
}

Result<std::optional<model::HostMarker>> LibvirtSessions::ReadMarker() {
  MonitorLock opening(*opening_);
  auto kept = TakeOrOpen();
  if (!kept) return std::unexpected(kept.error());
  auto markers = kept->session->ReadMarkers();
  Keep(*std::move(kept));
  if (!markers) return std::unexpected(markers.error());
  if (markers->size() > 1) return Fail(ErrorCode::kConflict, "the host carries several markers");
  if (markers->empty()) return std::nullopt;
  return std::move(markers->front());
}

Result<LibvirtSessions::Session> LibvirtSessions::Take() {
  if (auto kept = TakeProven()) return Lend(*std::move(kept));
  MonitorLock opening(*opening_);
  // Somebody may have opened it while we waited.
  if (auto kept = TakeProven()) return Lend(*std::move(kept));
  model::HostMarker marker;
  {
    MonitorLock lock(*monitor_);
    if (!marker_) return Fail(ErrorCode::kUnavailable, "the host was never connected to");
    if (clock_.Monotonic() < retry_at_) {
      return Fail(ErrorCode::kUnavailable, "not reconnected yet: " + last_error_.detail);
    }
    marker = *marker_;
  }
  auto kept = TakeAndProve(marker);
  // Whatever it is, nothing of the call that asked has happened.
  if (!kept) return Fail(ErrorCode::kUnavailable, Failed(kept.error()).error().detail);
  return Lend(*std::move(kept));
}

Result<LibvirtSessions::Kept> LibvirtSessions::TakeAndProve(const model::HostMarker& marker) {
  auto kept = TakeOrOpen();
  if (!kept) return kept;
  if (auto facts = Prove(*kept->session, marker, ports::MarkerPolicy::kRequire); !facts) {
    kept->proven = 0;
    Keep(*std::move(kept));
    return std::unexpected(facts.error());
  }
  MonitorLock lock(*monitor_);
  kept->proven = round_;
  return kept;
}

std::unexpected<Error> LibvirtSessions::Failed(const Error& error) {
  MonitorLock lock(*monitor_);
  ++round_;
  is_told_ = false;
  retry_at_ = clock_.Monotonic() + model::limits::kReconnectEvery;
  last_error_ = error;
  return std::unexpected(error);
}

Result<ports::HostFacts> LibvirtSessions::Prove(LibvirtSession& session,
                                                const model::HostMarker& marker,
                                                ports::MarkerPolicy policy) {
  auto wrote = session.CheckMarker(marker, policy);
  if (!wrote) return std::unexpected(wrote.error());
  std::optional<DomainType> type;
  {
    MonitorLock lock(*monitor_);
    type = type_;
  }
  if (!type) {
    auto chosen = session.ChooseType(options_.accelerator, logger_);
    if (!chosen) return std::unexpected(chosen.error());
    type = *chosen;
  }
  auto facts = session.Facts(*type);
  if (!facts) return facts;
  facts->wrote_marker = *wrote;
  MonitorLock lock(*monitor_);
  type_ = type;
  if (!std::exchange(is_told_, true)) {
    logger_.Info("hypervisor_connected", {{"uri", options_.uri.uri}});
  }
  return facts;
}

std::optional<LibvirtSessions::Kept> LibvirtSessions::TakeProven() {
  std::vector<Kept> dead;  // Closed without the lock.
  MonitorLock lock(*monitor_);
  dead = TakeDead();
  const auto found = std::ranges::find(kept_, round_, &Kept::proven);
  if (found == kept_.end()) return std::nullopt;
  Kept kept = std::move(*found);
  kept_.erase(found);
  return kept;
}

Result<LibvirtSessions::Kept> LibvirtSessions::TakeOrOpen() {
  {
    std::vector<Kept> dead;
    MonitorLock lock(*monitor_);
    dead = TakeDead();
    if (!kept_.empty()) {
      Kept kept = std::move(kept_.back());
      kept_.pop_back();
      return kept;
    }
  }
  auto session = Open();
  if (!session) return std::unexpected(session.error());
  return Kept{.session = *std::move(session)};
}

std::vector<LibvirtSessions::Kept> LibvirtSessions::TakeDead() {
  std::vector<Kept> dead;
  const auto first = std::stable_partition(
      kept_.begin(), kept_.end(), [](const Kept& kept) { return kept.session->IsAlive(); });
  dead.assign(std::move_iterator(first), std::move_iterator(kept_.end()));
  kept_.erase(first, kept_.end());
  return dead;
}

Result<LibvirtSessions::Session> LibvirtSessions::Open() {
  if (events_ == nullptr) {
    events_ = options_.events ? options_.events : std::make_shared<EventLoop>(threads_);
    events_->Start();
  }
  if (options_.uri.kind == HostKind::kEmbedded && root_ == nullptr) {
    auto root = EmbeddedRoot::Open(options_.uri.directory);
    if (!root) return std::unexpected(root.error());
    root_ = *std::move(root);
    trimmer_ = std::make_unique<ConsoleTrimmer>(
        ConsoleTrimmerOptions{root_->ConsolesPath(), options_.console_bytes}, threads_, logger_);
  }
  return LibvirtSession::Open(options_, root_);
}

LibvirtSessions::Session LibvirtSessions::Lend(Kept kept) {
  if (IsInProcess()) {
    Session shared = kept.session;
    Keep(std::move(kept));
    return shared;
  }
  LibvirtSession* const session = kept.session.get();
  return Session(
      session, [this, kept = std::move(kept)](LibvirtSession*) mutable { Keep(std::move(kept)); });
}

void LibvirtSessions::Keep(Kept kept) {
  MonitorLock lock(*monitor_);
  kept_.push_back(std::move(kept));
}

}  // namespace vmonce::hypervisor
