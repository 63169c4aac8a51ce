#include "base/system.h"

#include <pthread.h>
#include <sys/random.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace vmonce {
namespace {

class SystemClock final : public Clock {
 public:
  Time Now() override {
    const auto read = std::chrono::duration_cast<Milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
    // A clock set back must not un-expire what has expired: the highest value read so far is kept.
    std::int64_t seen = latest_ms_.load(std::memory_order_relaxed);
    while (seen < read && !latest_ms_.compare_exchange_weak(seen, read)) {
    }
    return FromUnixMs(std::max<std::int64_t>(seen, read));
  }

  Instant Monotonic() override {
    return Instant(std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch()));
  }

 private:
  std::atomic<std::int64_t> latest_ms_{0};
};

class SystemRandom final : public Random {
 public:
  void Fill(std::span<std::byte> out) override {
    while (!out.empty()) {
      const ssize_t got = getrandom(out.data(), out.size(), 0);
      if (got < 0) {
        CHECK_MSG(errno == EINTR, "getrandom failed");
        continue;
      }
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }
};

class SystemMonitor final : public Monitor {
 public:
  void Lock() override NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void Unlock() override NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
  void Wait() override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  bool WaitUntil(Instant deadline) override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    bool in_time = true;
    if (deadline == kNever) {
      condition_.wait(lock);
    } else {
      const std::chrono::steady_clock::time_point until(deadline.time_since_epoch());
      in_time = condition_.wait_until(lock, until) == std::cv_status::no_timeout;
    }
    lock.release();
    return in_time;
  }
  void NotifyOne() override { condition_.notify_one(); }
  void NotifyAll() override { condition_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
};

void NameThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

class SystemThread final : public Thread {
 public:
  SystemThread(std::string name, std::function<void(std::stop_token)> body)
      : thread_([name = std::move(name), body = std::move(body)](std::stop_token stop) {
          NameThread(name);
          body(stop);
        }) {}
  void RequestStop() override { thread_.request_stop(); }
  void Join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::jthread thread_;
};

class SystemThreads final : public Threads {
 public:
  std::unique_ptr<Thread> Spawn(std::string name,
                                std::function<void(std::stop_token)> body) override {
    return std::make_unique<SystemThread>(std::move(name), std::move(body));
  }

  void SpawnDetached(std::string name, std::function<void()> body) override {
    std::thread([name = std::move(name), body = std::move(body)] {
      NameThread(name);
      body();
    }).detach();
  }

  std::unique_ptr<Monitor> NewMonitor() override { return std::make_unique<SystemMonitor>(); }

  bool SleepFor(Milliseconds duration, std::stop_token stop) override {
    std::mutex mutex;
    std::condition_variable_any condition;
    std::unique_lock lock(mutex);
    condition.wait_for(lock, stop, duration, [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace

std::unique_ptr<Clock> NewSystemClock() { return std::make_unique<SystemClock>(); }
std::unique_ptr<Random> NewSystemRandom() { return std::make_unique<SystemRandom>(); }
std::unique_ptr<Threads> NewSystemThreads() { return std::make_unique<SystemThreads>(); }

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace vmonce
