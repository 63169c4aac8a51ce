// What the contract suite stands on: one host of each kind, and a stranger's hand on it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "hypervisor/event_loop.h"
#include "hypervisor/fault_plan.h"
#include "hypervisor/host_threads.h"
#include "hypervisor/libvirt_handles.h"
#include "hypervisor/private_libvirtd.h"
#include "hypervisor/simulated_host.h"
#include "ports/hypervisor.h"

namespace vmonce::hypervisor {

inline model::HostMarker TestMarker() { return {.ledger = {"0123456789ab"}, .host = {"one"}}; }

// One for all drivers of the process, as in the service: a second thread at libvirt's loop may wait
// for ever.
inline std::shared_ptr<EventLoop> TestEvents() {
  struct Shared {
    const std::unique_ptr<Threads> threads = NewSystemThreads();
    EventLoop loop{*threads};
  };
  static const auto shared = std::make_shared<Shared>();
  return {shared, &shared->loop};
}

// A host that outlives its drivers.
class Bed {
 public:
  virtual ~Bed() = default;

  // A driver as a service that starts would have it, not yet connected.
  virtual std::unique_ptr<ports::Hypervisor> NewDriver() = 0;
  // A domain made by somebody else; with a label when `label` is set.
  virtual void Plant(const model::VmId& id, const std::string& name,
                     const std::optional<model::Label>& label) = 0;
  virtual bool IsThere(const model::VmId& id, const std::string& name) = 0;
  virtual void Remove(const model::VmId& id) = 0;

  // An image that every host of this kind can start, with a disk.
  virtual model::Image Image() = 0;

  // Between two looks at a state that is waited for.
  void Pause() { threads_->SleepFor(Milliseconds(50), {}); }
  // A tool that must succeed.
  static void Run(std::vector<std::string> argv);

  Clock& clock() { return *clock_; }
  Random& random() { return *random_; }

 protected:
  const std::unique_ptr<Clock> clock_ = NewSystemClock();
  const std::unique_ptr<Threads> threads_ = NewSystemThreads();
  const std::unique_ptr<Random> random_ = NewSystemRandom();
  const std::unique_ptr<Logger> logger_ = NewNullLogger();

 public:
  // The one driver of the bed: an embedded host can be opened only some 20 times in a process.
  // Last, since its threads use the above until it ends.
  std::unique_ptr<ports::Hypervisor> driver;
};

class SimulatedBed final : public Bed {
 public:
  SimulatedBed();
  std::unique_ptr<ports::Hypervisor> NewDriver() override;
  void Plant(const model::VmId& id, const std::string& name,
             const std::optional<model::Label>& label) override;
  bool IsThere(const model::VmId& id, const std::string& name) override;
  void Remove(const model::VmId& id) override;
  model::Image Image() override;

 private:
  std::shared_ptr<SimulatedHost> host_;  // Shared with its drivers.
};

// The stranger's own connection to a libvirt host, beside the driver's.
class LibvirtBed : public Bed {
 public:
  void Plant(const model::VmId& id, const std::string& name,
             const std::optional<model::Label>& label) override;
  bool IsThere(const model::VmId& id, const std::string& name) override;
  void Remove(const model::VmId& id) override;

  // Opened at the first use: an embedded host's settings are written by its first driver. Anew
  // after its daemon has died.
  virConnectPtr connection();

 protected:
  explicit LibvirtBed(bool is_test) : is_test_(is_test) {}
  std::unique_ptr<HostThreads> NewDriverOf(const std::string& uri,
                                           const std::string& pool_path = "");

  std::string uri_;

 private:
  const bool is_test_;
  std::unique_ptr<virConnect, LibvirtFree<virConnectClose>> connection_;
};

class TestDriverBed final : public LibvirtBed {
 public:
  TestDriverBed();
  std::unique_ptr<ports::Hypervisor> NewDriver() override;
  model::Image Image() override;
};

// libvirt has one embedded root in a process: one of these at most.
class EmbeddedBed final : public LibvirtBed {
 public:
  EmbeddedBed();
  ~EmbeddedBed() override;
  std::unique_ptr<ports::Hypervisor> NewDriver() override;
  model::Image Image() override;

  const std::string& root() const { return root_.path(); }
  std::string base_path() const { return root_.File("base.qcow2"); }

  // A process that is killed when this goes.
  class Meanwhile {
   public:
    explicit Meanwhile(pid_t pid) : pid_(pid) {}
    ~Meanwhile();
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

   private:
    const pid_t pid_;
  };
  std::unique_ptr<Meanwhile> RunMeanwhile(std::vector<std::string> argv);

 private:
  TempDir root_;
};

// A daemon, reached as one of this machine.
class DaemonBed : public LibvirtBed {
 public:
  DaemonBed();
  std::unique_ptr<ports::Hypervisor> NewDriver() override;
  model::Image Image() override;

  PrivateLibvirtd& daemon() { return daemon_; }

 protected:
  PrivateLibvirtd daemon_;
};

// The same as another machine's: what only that machine has is not to be had as a file.
class RemoteBed final : public DaemonBed {
 public:
  std::unique_ptr<ports::Hypervisor> NewDriver() override;
};

// The guest that packaging/guest/build makes, without a disk. Fails the test, and says how to make
// it, when VMONCE_GUEST_DIR does not name it.
model::Image GuestImage();

}  // namespace vmonce::hypervisor
