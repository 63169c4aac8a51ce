// The hosts of the contract suite.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "hypervisor/domain_xml.h"
#include "hypervisor/driver_contract_beds.h"
#include "hypervisor/factory.h"
#include "hypervisor/label_xml.h"
#include "hypervisor/simulated_driver.h"

namespace vmonce::hypervisor {
namespace {

std::string StrangersXml(bool is_test, const model::VmId& id, const std::string& name,
                         const std::optional<model::Label>& label) {
  std::string metadata;
  if (label) {
    metadata = fmt::format("<metadata><vmonce:label xmlns:vmonce='{}' {}</metadata>",
                           model::kLabelNamespace, BuildLabelXml(*label)->substr(7));
  }
  return fmt::format(
      "<domain type='{}'><name>{}</name><uuid>{}</uuid>{}<memory unit='MiB'>64</memory>"
      "<os><type arch='{}'>hvm</type></os></domain>",
      is_test ? "test" : "qemu", name, ToString(id), metadata, is_test ? "i686" : "x86_64");
}

}  // namespace

void Bed::Run(std::vector<std::string> argv) {
  auto ran = RunProcess({.argv = std::move(argv), .timeout = Milliseconds(60'000)});
  CHECK_MSG(ran && ran->Succeeded(), ran ? ran->Describe() : ran.error().detail);
}

SimulatedBed::SimulatedBed() {
  auto host = SimulatedHost::Open({}, *clock_, *threads_);
  CHECK(host.has_value());
  host_ = *std::move(host);
}

std::unique_ptr<ports::Hypervisor> SimulatedBed::NewDriver() {
  return std::make_unique<SimulatedDriver>(host_, std::make_shared<NoFaults>(),
                                           SimulatedDriverOptions{}, *clock_, *threads_);
}

void SimulatedBed::Plant(const model::VmId& id, const std::string& name,
                         const std::optional<model::Label>& label) {
  host_->Plant({.id = id, .name = name, .label = label});
}

bool SimulatedBed::IsThere(const model::VmId& id, const std::string& name) {
  const auto found = host_->Find(id);
  return found && found->name == name;
}

void SimulatedBed::Remove(const model::VmId& id) {
  CHECK(host_->ChangeDomain(SimulatedCall::kUndefine, id, [](auto& domain) {
    domain.reset();
    return Status();
  }));
}

model::Image SimulatedBed::Image() {
  return {.name = "made-up", .disk_path = "/images/base.qcow2", .disk_format = "qcow2"};
}

std::unique_ptr<HostThreads> LibvirtBed::NewDriverOf(const std::string& uri,
                                                     const std::string& pool_path) {
  uri_ = uri;
  auto made =
      NewHypervisor({.id = TestMarker().host,
                     .uri = uri,
                     // Whether KVM really works elsewhere cannot be tried from here.
                     .accelerator = pool_path.empty() ? Accelerator::kAuto : Accelerator::kTcg,
                     .pool_path = pool_path,
                     .events = TestEvents()},
                    *clock_, *threads_, *random_, *logger_);
  CHECK_MSG(made.has_value(), made ? "" : made.error().detail);
  return *std::move(made);
}

virConnectPtr LibvirtBed::connection() {
  if (connection_ == nullptr || virConnectIsAlive(connection_.get()) != 1) {
    connection_.reset(virConnectOpen(uri_.c_str()));
  }
  CHECK(connection_ != nullptr);
  return connection_.get();
}

void LibvirtBed::Plant(const model::VmId& id, const std::string& name,
                       const std::optional<model::Label>& label) {
  const std::string xml = StrangersXml(is_test_, id, name, label);
  const DomainHandle made(virDomainDefineXML(connection(), xml.c_str()));
  CHECK_MSG(made != nullptr, LastFault().message);
}

bool LibvirtBed::IsThere(const model::VmId& id, const std::string& name) {
  const DomainHandle found(virDomainLookupByUUIDString(connection(), ToString(id).c_str()));
  return found != nullptr && name == virDomainGetName(found.get());
}

void LibvirtBed::Remove(const model::VmId& id) {
  const DomainHandle found(virDomainLookupByUUIDString(connection(), ToString(id).c_str()));
  if (found == nullptr) return;
  if (virDomainIsActive(found.get()) == 1) virDomainDestroy(found.get());
  virDomainUndefine(found.get());
}

TestDriverBed::TestDriverBed() : LibvirtBed(true) {
  uri_ = "test:///default";
  const PoolHandle pool(virStoragePoolLookupByName(connection(), "default-pool"));
  const VolumeHandle base(
      virStorageVolCreateXML(pool.get(),
                             "<volume><name>base.qcow2</name><capacity unit='MiB'>64</capacity>"
                             "<target><format type='qcow2'/></target></volume>",
                             0));
  CHECK_MSG(base != nullptr, LastFault().message);
}

std::unique_ptr<ports::Hypervisor> TestDriverBed::NewDriver() {
  return NewDriverOf("test:///default");
}

model::Image TestDriverBed::Image() {
  return {.name = "base", .disk_path = "/default-pool/base.qcow2", .disk_format = "qcow2"};
}

EmbeddedBed::EmbeddedBed() : LibvirtBed(false) {
  Run({"qemu-img", "create", "-q", "-f", "qcow2", base_path(), "64M"});
}

EmbeddedBed::~EmbeddedBed() {
  // No QEMU process may outlive the tests.
  if (uri_.empty()) return;
  virDomainPtr* domains = nullptr;
  const int count = virConnectListAllDomains(connection(), &domains, 0);
  for (int i = 0; i < count; ++i) {
    const DomainHandle domain(domains[i]);
    if (virDomainIsActive(domain.get()) == 1) virDomainDestroy(domain.get());
  }
  std::free(domains);
}

std::unique_ptr<ports::Hypervisor> EmbeddedBed::NewDriver() {
  return NewDriverOf("qemu:///embed?root=" + root());
}

model::Image EmbeddedBed::Image() {
  model::Image image = GuestImage();
  image.disk_path = base_path();
  image.disk_format = "qcow2";
  return image;
}

DaemonBed::DaemonBed() : LibvirtBed(false) {
  Run({"qemu-img", "create", "-q", "-f", "qcow2", daemon_.PoolPath() + "/base.qcow2", "64M"});
}

std::unique_ptr<ports::Hypervisor> DaemonBed::NewDriver() {
  return NewDriverOf(daemon_.LocalUri(), daemon_.PoolPath());
}

std::unique_ptr<ports::Hypervisor> RemoteBed::NewDriver() {
  return NewDriverOf(daemon_.RemoteUri(), daemon_.PoolPath());
}

model::Image DaemonBed::Image() {
  model::Image image = GuestImage();
  image.disk_path = daemon_.PoolPath() + "/base.qcow2";
  image.disk_format = "qcow2";
  return image;
}

std::unique_ptr<EmbeddedBed::Meanwhile> EmbeddedBed::RunMeanwhile(std::vector<std::string> argv) {
  std::vector<char*> arguments;
  for (std::string& argument : argv) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  CHECK(posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0);
  return std::make_unique<Meanwhile>(pid);
}

EmbeddedBed::Meanwhile::~Meanwhile() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

model::Image GuestImage() {
  const auto directory = Environment("VMONCE_GUEST_DIR");
  EXPECT_TRUE(directory) << "VMONCE_GUEST_DIR must name a directory made by "
                            "packaging/guest/build DIRECTORY";
  const std::string path = directory.value_or("/nowhere");
  const auto cmdline = ReadWholeFile(path + "/cmdline", 4096);
  EXPECT_TRUE(cmdline) << "no guest in " << path << ": run packaging/guest/build " << path;
  return {.name = "tiny",
          .kind = model::ImageKind::kKernel,
          .kernel_path = path + "/vmlinuz",
          .initrd_path = path + "/initrd.gz",
          .cmdline = cmdline ? cmdline->substr(0, cmdline->find('\n')) : ""};
}

}  // namespace vmonce::hypervisor
