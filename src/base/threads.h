// Threads, mutexes and waits are a door too: production hands in the operating system's, a
// simulated world hands in fibers on one thread. Code that blocks does so only through what stands
// here.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"

// Clang's -Wthread-safety, an error in the clang build; nothing elsewhere.
#if defined(__clang__)
#define VMONCE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define VMONCE_THREAD_ATTRIBUTE(x)
#endif
#define CAPABILITY(x) VMONCE_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY VMONCE_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) VMONCE_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES(...) VMONCE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) VMONCE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) VMONCE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) VMONCE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS VMONCE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace vmonce {

// A mutex and its one condition, in the sense of Hoare's and Java's monitors.
class CAPABILITY("mutex") Monitor {
 public:
  virtual ~Monitor() = default;

  virtual void Lock() ACQUIRE() = 0;
  virtual void Unlock() RELEASE() = 0;

  // Called with the lock held, which is given up while waiting and held again on return. May return
  // for no reason: call it in a loop over a state. WaitUntil returns false when `deadline` (of the
  // same world's Clock) has passed.
  virtual void Wait() REQUIRES(this) = 0;
  virtual bool WaitUntil(Instant deadline) REQUIRES(this) = 0;

  // With or without the lock.
  virtual void NotifyOne() = 0;
  virtual void NotifyAll() = 0;
};

class SCOPED_CAPABILITY MonitorLock {
 public:
  explicit MonitorLock(Monitor& monitor) ACQUIRE(monitor) : monitor_(monitor) { monitor_.Lock(); }
  ~MonitorLock() RELEASE() { monitor_.Unlock(); }
  MonitorLock(const MonitorLock&) = delete;
  MonitorLock& operator=(const MonitorLock&) = delete;

 private:
  Monitor& monitor_;
};

// Ends with its function. Destroying it requests stop and joins.
class Thread {
 public:
  virtual ~Thread() = default;
  virtual void RequestStop() = 0;
  virtual void Join() = 0;
};

// Thread-safe.
class Threads {
 public:
  virtual ~Threads() = default;

  // `name` is at most 15 bytes (what the kernel shows). `body` gets a token that RequestStop()
  // sets.
  virtual std::unique_ptr<Thread> Spawn(std::string name,
                                        std::function<void(std::stop_token)> body) = 0;

  // A thread that nobody joins, for a call that may never return (a hung hypervisor). It owns all
  // it touches. The process ends by _exit while one is out.
  virtual void SpawnDetached(std::string name, std::function<void()> body) = 0;

  virtual std::unique_ptr<Monitor> NewMonitor() = 0;

  // Returns early, with false, when `stop` is requested.
  virtual bool SleepFor(Milliseconds duration, std::stop_token stop) = 0;
};

}  // namespace vmonce
