// The sessions of one libvirt host: opened when they are needed, proven by the host's marker, kept
// for the next call.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "hypervisor/console_trimmer.h"
#include "hypervisor/event_loop.h"
#include "hypervisor/libvirt_session.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

// A call to a daemon has a session of its own while it lasts: with several threads at one
// connection, libvirt 9's client ends the process (a wake-up that reaches a wait that is over) when
// a daemon that stood still goes on. There are thus as many as calls at once, which HostThreads
// bounds, and one for each image that is being sent. What runs in this process (embedded, test) has
// no such client and shares one.
//
// Thread-safe; blocks for as long as libvirt does. Tries a host that does not answer at most every
// limits::kReconnectEvery.
class LibvirtSessions final {
 public:
  // Comes back by itself when the last copy goes; before this object does.
  using Session = std::shared_ptr<LibvirtSession>;

  LibvirtSessions(LibvirtOptions options, Clock& clock, Threads& threads, Logger& logger);
  ~LibvirtSessions();

  // As ports::Hypervisor says of them. After a Connect that failed nothing is taken for proven.
  Result<ports::HostFacts> Connect(const model::HostMarker& marker, ports::MarkerPolicy policy);
  Result<std::optional<model::HostMarker>> ReadMarker();

  // A session to a host that carries the marker of the last good Connect. kUnavailable: there is
  // none now; nothing has happened on the host.
  Result<Session> Take();
  // What new definitions get. After a good Connect.
  DomainType Type() const;

 private:
  struct Kept {
    Session session;
    int proven = 0;  // The round in which its marker was found to be ours.
  };

  bool IsInProcess() const;
  // One whose marker is proven, if there is one at hand.
  std::optional<Kept> TakeProven();
  // Any at hand, or a new one. One of them at a time.
  Result<Kept> TakeOrOpen() REQUIRES(*opening_);
  Result<Session> Open() REQUIRES(*opening_);
  Result<ports::HostFacts> Prove(LibvirtSession& session, const model::HostMarker& marker,
                                 ports::MarkerPolicy policy) REQUIRES(*opening_);
  Result<Kept> TakeAndProve(const model::HostMarker& marker) REQUIRES(*opening_);
  std::unexpected<Error> Failed(const Error& error);
  Session Lend(Kept kept);
  void Keep(Kept kept);
  // Those that are dead are not kept.
  std::vector<Kept> TakeDead() REQUIRES(*monitor_);

  const LibvirtOptions options_;
  Clock& clock_;
  Threads& threads_;
  Logger& logger_;

  const std::unique_ptr<Monitor> opening_;                         // Held while connecting.
  std::shared_ptr<EventLoop> events_ GUARDED_BY(*opening_);        // Shared with other hosts.
  std::shared_ptr<EmbeddedRoot> root_ GUARDED_BY(*opening_);       // Shared with sessions.
  std::unique_ptr<ConsoleTrimmer> trimmer_ GUARDED_BY(*opening_);  // From the root's opening on.

  const std::unique_ptr<Monitor> monitor_;                // After opening_; held for moments.
  std::optional<DomainType> type_ GUARDED_BY(*monitor_);  // Once it is chosen.
  std::optional<model::HostMarker> marker_ GUARDED_BY(*monitor_);  // Of the last good Connect.
  int round_ GUARDED_BY(*monitor_) = 1;  // Another one after every Connect that failed.
  // Kept though their marker may be wrong: a process can open an embedded libvirt some 20 times,
  // then never again.
  std::vector<Kept> kept_ GUARDED_BY(*monitor_);
  bool is_told_ GUARDED_BY(*monitor_) = false;  // That the host is connected.
  Instant retry_at_ GUARDED_BY(*monitor_){};
  Error last_error_ GUARDED_BY(*monitor_){};
};

}  // namespace vmonce::hypervisor
