#include "hypervisor/kvm_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/process.h"
#include "base/unique_fd.h"
#include "hypervisor/scratch.h"

namespace vmonce::hypervisor {
namespace {

// How far the child came; its exit code.
enum ProbeExit : int { kRan = 0, kNoDevice, kNoMachine, kNoMemory, kNoProcessor, kDidNotRun };

constexpr std::uint64_t kCodeAddress = 0x1000;
constexpr std::size_t kPageBytes = 4096;
// out 0x10, al; hlt
constexpr std::array<std::uint8_t, 3> kCode{0xE6, 0x10, 0xF4};
// A killed child that sits in the kernel ends when the kernel lets it; we do not wait for that.
constexpr int kReapWithinMs = 200;

bool RunToHalt(int vcpu, const kvm_run& run) {
  if (ioctl(vcpu, KVM_RUN, 0) != 0 || run.exit_reason != KVM_EXIT_IO) return false;
  return ioctl(vcpu, KVM_RUN, 0) == 0 && run.exit_reason == KVM_EXIT_HLT;
}

int MakeProcessor(int device, int machine, kvm_run** run) {
  const int vcpu = ioctl(machine, KVM_CREATE_VCPU, 0);
  const int size = ioctl(device, KVM_GET_VCPU_MMAP_SIZE, 0);
  if (vcpu < 0 || size < static_cast<int>(sizeof(kvm_run))) return -1;
  void* shared = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
  if (shared == MAP_FAILED) return -1;
  *run = static_cast<kvm_run*>(shared);

  kvm_sregs segments{};
  if (ioctl(vcpu, KVM_GET_SREGS, &segments) != 0) return -1;
  segments.cs.base = 0;
  segments.cs.selector = 0;
  kvm_regs registers{};
  registers.rip = kCodeAddress;
  registers.rflags = 2;
  if (ioctl(vcpu, KVM_SET_SREGS, &segments) != 0) return -1;
  return ioctl(vcpu, KVM_SET_REGS, &registers) == 0 ? vcpu : -1;
}

// Runs between fork and _exit in a process that had other threads: only system calls, no memory
// of malloc's, no locks.
int TryInChild() {
  // What the parent holds (locks, listening sockets) must not be held by a child that hangs.
  syscall(SYS_close_range, 3U, ~0U, 0U);
  const int device = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (device < 0) return kNoDevice;
  const int machine = ioctl(device, KVM_CREATE_VM, 0);
  if (machine < 0) return kNoMachine;
  void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return kNoMemory;
  std::memcpy(page, kCode.data(), kCode.size());
  kvm_userspace_memory_region region{};
  region.guest_phys_addr = kCodeAddress;
  region.memory_size = kPageBytes;
  region.userspace_addr = reinterpret_cast<std::uint64_t>(page);
  if (ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region) != 0) return kNoMemory;
  kvm_run* run = nullptr;
  const int vcpu = MakeProcessor(device, machine, &run);
  if (vcpu < 0) return kNoProcessor;
  return RunToHalt(vcpu, *run) ? kRan : kDidNotRun;
}

std::string Cause(int exit_code) {
  switch (exit_code) {
    case kRan: return "";
    case kNoDevice: return "/dev/kvm cannot be opened (no KVM, or no right to use it)";
    case kNoMachine: return "KVM makes no virtual machine";
    case kNoMemory: return "KVM takes no memory";
    case kNoProcessor: return "KVM makes no virtual processor";
    default: return "a KVM processor did not run its first instructions";
  }
}

// True when the child has ended within `ms`.
bool WaitForEnd(int child_fd, std::int64_t ms) {
  pollfd waiting{.fd = child_fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    // Begun again after a signal; signals are rare enough not to stretch the deadline.
    ready = poll(&waiting, 1, static_cast<int>(ms));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

KvmProbe Judge(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return {.cause = "the KVM probe was lost"};
  if (!WIFEXITED(status)) {
    return {.cause = fmt::format("the KVM probe died of signal {}", WTERMSIG(status))};
  }
  return {.is_usable = WEXITSTATUS(status) == kRan, .cause = Cause(WEXITSTATUS(status))};
}

KvmProbe ProbeProcessor(Milliseconds within) {
  const pid_t child = fork();
  if (child < 0) return {.cause = fmt::format("no process for the KVM probe: errno {}", errno)};
  if (child == 0) _exit(TryInChild());

  const UniqueFd child_fd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  if (child_fd.IsOpen() && WaitForEnd(child_fd.get(), within.count())) return Judge(child);
  kill(child, SIGKILL);
  if (!child_fd.IsOpen() || WaitForEnd(child_fd.get(), kReapWithinMs)) {
    waitpid(child, nullptr, 0);
  }
  return {.cause = fmt::format("/dev/kvm opens, but a processor hangs: nothing within {} ms",
                               within.count())};
}

// mov al, 0x10; out 0xf4, al; hlt; and the mark of a boot sector. The device there ends QEMU.
std::string BootSector() {
  std::string sector(512, '\0');
  sector.replace(0, 5, "\xB0\x10\xE6\xF4\xF4");
  sector.replace(510, 2, "\x55\xAA");
  return sector;
}
constexpr int kBootedExit = (0x10 << 1) | 1;  // What isa-debug-exit makes of the 0x10.

KvmProbe ProbeBoot(Milliseconds within) {
  auto scratch = ScratchDirectory::Make("/tmp");
  if (!scratch) return {.cause = scratch.error().detail};
  const std::string disk = scratch->path() + "/boot";
  if (auto written = WriteFileAtomically(disk, BootSector(), 0600); !written) {
    return {.cause = written.error().detail};
  }
  auto ran = RunProcess(
      {.argv = {"qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "16", "-nodefaults",
                "-no-user-config", "-display", "none", "-no-reboot", "-device",
                "isa-debug-exit,iobase=0xf4,iosize=1", "-drive", "format=raw,if=ide,file=" + disk},
       .timeout = within});
  if (!ran) return {.cause = ran.error().detail};
  if (ran->exit_code == kBootedExit) return {.is_usable = true};
  if (ran->timed_out) {
    return {.cause = fmt::format("KVM runs an instruction, but no firmware: QEMU hung for {} ms",
                                 within.count())};
  }
  return {.cause = "KVM runs an instruction, but QEMU does not start with it: " + ran->Describe()};
}

}  // namespace

std::optional<Accelerator> ParseAccelerator(std::string_view text) {
  if (text == "auto") return Accelerator::kAuto;
  if (text == "kvm") return Accelerator::kKvm;
  if (text == "tcg") return Accelerator::kTcg;
  return std::nullopt;
}

KvmProbe ProbeKvm(Milliseconds within) {
  KvmProbe probe = ProbeProcessor(within / 3);
  return probe.is_usable ? ProbeBoot(within * 2 / 3) : probe;
}

}  // namespace vmonce::hypervisor
