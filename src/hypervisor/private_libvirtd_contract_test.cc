#include "hypervisor/private_libvirtd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "base/port_probe.h"
#include "hypervisor/libvirt_handles.h"

namespace vmonce::hypervisor {
namespace {

// Two daemons of one test process, and those of others, get different ones.
int FreePort() {
  const std::unique_ptr<Random> random = NewSystemRandom();
  while (true) {
    const auto port = static_cast<std::uint16_t>(10'000 + random->Below(20'000));
    if (!IsTcpPortInUse("127.0.0.1", port)) return port;
  }
}

}  // namespace

PrivateLibvirtd::PrivateLibvirtd() : port_(FreePort()) {
  CHECK(mkdir(PoolPath().c_str(), 0755) == 0);
  Start();
}

PrivateLibvirtd::~PrivateLibvirtd() {
  Thaw();
  const std::unique_ptr<virConnect, LibvirtFree<virConnectClose>> connection(
      virConnectOpen(LocalUri().c_str()));
  virDomainPtr* domains = nullptr;
  const int count =
      connection == nullptr
          ? 0
          : virConnectListAllDomains(connection.get(), &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
  for (int i = 0; i < count; ++i) virDomainDestroy(DomainHandle(domains[i]).get());
  if (count >= 0) std::free(domains);
  CHECK(pid_ > 0);
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

std::string PrivateLibvirtd::LocalUri() const {
  return fmt::format("qemu+unix:///system?socket={}/socket/libvirt-sock", dir_.path());
}

std::string PrivateLibvirtd::RemoteUri() const {
  return fmt::format("qemu+tcp://127.0.0.1:{}/system", port_);
}

void PrivateLibvirtd::Start() {
  CHECK(pid_ == 0);
  const auto source = std::filesystem::path(__FILE__).parent_path() / "../..";
  std::string script = (source / "tests/private_libvirtd").string();
  std::string directory = dir_.path();
  std::string port = std::to_string(port_);
  const std::string said = dir_.File("said");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  char* arguments[] = {script.data(), directory.data(), port.data(), nullptr};
  CHECK(posix_spawn(&pid_, script.c_str(), &actions, nullptr, arguments, environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  const Instant until = clock_->Monotonic() + std::chrono::seconds(30);
  while (!Answers()) {
    CHECK_MSG(clock_->Monotonic() < until && waitpid(pid_, nullptr, WNOHANG) == 0,
              "libvirtd does not answer: " + ReadWholeFile(said, 4096).value_or(""));
    threads_->SleepFor(Milliseconds(50), {});
  }
}

bool PrivateLibvirtd::Answers() const {
  const std::unique_ptr<virConnect, LibvirtFree<virConnectClose>> connection(
      virConnectOpen(LocalUri().c_str()));
  return connection != nullptr;
}

void PrivateLibvirtd::Kill() {
  // Anything but its own number would be a signal to many.
  CHECK(pid_ > 0);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void PrivateLibvirtd::Freeze() {
  CHECK(pid_ > 0);
  kill(pid_, SIGSTOP);
}

void PrivateLibvirtd::Thaw() {
  CHECK(pid_ > 0);
  kill(pid_, SIGCONT);
}

}  // namespace vmonce::hypervisor
