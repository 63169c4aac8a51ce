#include "hypervisor/pool_disks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/sha256.h"
#include "hypervisor/base_image.h"
#include "hypervisor/cloud_init.h"
#include "hypervisor/console_file.h"
#include "hypervisor/marker.h"
#include "hypervisor/scratch.h"
#include "hypervisor/xml_text.h"
#include "model/limits.h"

namespace vmonce::hypervisor {
namespace {

constexpr std::int64_t kGib = 1LL << 30;
constexpr std::size_t kKernelBytes = 512 << 20;  // Installers' initrds have some 100 MiB.
constexpr std::size_t kStreamBytes = 256 << 10;  // libvirt's own largest stream packet.

Result<PoolHandle> MakePool(virConnectPtr connection, const PoolOptions& options) {
  if (options.path.empty()) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("there is no storage pool {}; make it, or set the path where it is to "
                            "be made",
                            options.name));
  }
  const std::string xml =
      fmt::format("<pool type='dir'><name>{}</name><target><path>{}</path></target></pool>",
                  EscapeXml(options.name), EscapeXml(options.path));
  PoolHandle pool(virStoragePoolDefineXML(connection, xml.c_str(), 0));
  if (pool == nullptr) return LookFailed("defining the storage pool", LastFault());
  // The directory may stand already, so what this says is not asked.
  virStoragePoolBuild(pool.get(), VIR_STORAGE_POOL_BUILD_NEW);
  virStoragePoolSetAutostart(pool.get(), 1);
  return pool;
}

Result<PoolHandle> FindPool(virConnectPtr connection, const PoolOptions& options) {
  PoolHandle pool(virStoragePoolLookupByName(connection, options.name.c_str()));
  if (pool == nullptr) {
    const LibvirtFault fault = LastFault();
    if (fault.code != VIR_ERR_NO_STORAGE_POOL) return LookFailed("the storage pool", fault);
    auto made = MakePool(connection, options);
    if (!made) return made;
    pool = *std::move(made);
  }
  if (virStoragePoolIsActive(pool.get()) != 1 && virStoragePoolCreate(pool.get(), 0) != 0) {
    return LookFailed("starting the storage pool", LastFault());
  }
  return pool;
}

Result<std::string> TargetOf(virStoragePoolPtr pool) {
  const LibvirtText xml(virStoragePoolGetXMLDesc(pool, 0));
  if (xml == nullptr) return LookFailed("the storage pool", LastFault());
  const XmlDocument document = ParseXml(xml.get());
  const xmlNode* root = document == nullptr ? nullptr : xmlDocGetRootElement(document.get());
  const auto path = XmlText(XmlChild(XmlChild(root, "target"), "path"));
  if (!path) return Fail(ErrorCode::kUnavailable, "the storage pool has no directory");
  return *path;
}

std::string VolumeXml(const std::string& name, std::int64_t bytes, std::string_view format,
                      const std::string& backing) {
  return fmt::format(
      "<volume><name>{}</name><capacity unit='bytes'>{}</capacity>"
      "<allocation unit='bytes'>0</allocation><target><format type='{}'/></target>{}</volume>",
      EscapeXml(name), bytes, format, backing);
}

bool NamesBackingFile(virStorageVolPtr volume) {
  const LibvirtText xml(virStorageVolGetXMLDesc(volume, 0));
  const XmlDocument document = xml == nullptr ? nullptr : ParseXml(xml.get());
  const xmlNode* root = document == nullptr ? nullptr : xmlDocGetRootElement(document.get());
  const xmlNode* backing = XmlChild(root, "backingStore");
  return root == nullptr || XmlChild(backing, "path") != nullptr;
}

// Receives up to chunk.size() bytes; shorter at the end of the stream.
Result<std::string> Receive(virStreamPtr stream, std::size_t most) {
  std::string data(most, '\0');
  std::size_t got = 0;
  while (got < most) {
    const int more = virStreamRecv(stream, data.data() + got, std::min(most - got, kStreamBytes));
    if (more < 0) {
      const LibvirtFault fault = LastFault();
      virStreamAbort(stream);
      return LookFailed("reading the console", fault);
    }
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  // All that was wanted is here; what the other side says at the end changes nothing.
  if (virStreamFinish(stream) != 0) virStreamAbort(stream);
  data.resize(got);
  return data;
}

Status SendAll(virStreamPtr stream, std::string_view data) {
  while (!data.empty()) {
    const int sent = virStreamSend(stream, data.data(), std::min(data.size(), kStreamBytes));
    if (sent < 0) {
      const LibvirtFault fault = LastFault();
      virStreamAbort(stream);
      return LookFailed("sending to the pool", fault);
    }
    data.remove_prefix(static_cast<std::size_t>(sent));
  }
  if (virStreamFinish(stream) != 0) return LookFailed("sending to the pool", LastFault());
  return {};
}

}  // namespace

Result<std::unique_ptr<PoolDisks>> PoolDisks::Open(virConnectPtr connection, PoolOptions options) {
  auto pool = FindPool(connection, options);
  if (!pool) return std::unexpected(pool.error());
  auto target = TargetOf(pool->get());
  if (!target) return std::unexpected(target.error());
  return std::make_unique<PoolDisks>(connection, *std::move(pool), std::move(options),
                                     *std::move(target));
}

PoolDisks::PoolDisks(virConnectPtr connection, PoolHandle pool, PoolOptions options,
                     std::string target)
    : connection_(connection),
      pool_(std::move(pool)),
      options_(std::move(options)),
      target_(std::move(target)) {}

Result<std::vector<model::HostMarker>> PoolDisks::ReadMarkers() {
  auto names = Names();
  if (!names) return std::unexpected(names.error());
  std::vector<model::HostMarker> found;
  for (const std::string& name : *names) {
    if (auto one = ParseMarkerVolumeName(name)) found.push_back(*std::move(one));
  }
  return found;
}

Result<bool> PoolDisks::CheckMarker(const model::HostMarker& marker, ports::MarkerPolicy policy) {
  const auto found = ReadMarkers();
  if (!found) return std::unexpected(found.error());
  auto write = JudgeMarkers(*found, marker, policy == ports::MarkerPolicy::kWriteIfNone);
  if (!write || !*write) return write;
  const std::string name = MarkerVolumeName(marker);
  if (auto made = Create(name, VolumeXml(name, 1, "raw", ""), [] { return Status(); }); !made) {
    return Fail(ErrorCode::kUnavailable, made.error().detail);
  }
  return true;
}

Status PoolDisks::CreateDisk(const ports::DiskOrder& order, const Permit& permit) {
  if (auto sane = CheckDiskOrder(order); !sane) return sane;
  auto existing = Find(order.name);
  if (!existing) return std::unexpected(existing.error());
  if (*existing != nullptr) return {};
  std::int64_t bytes = order.size_gib * kGib;
  std::string backing;
  if (!order.base_path.empty()) {
    auto size = InspectBase(order);
    if (!size) return std::unexpected(size.error());
    if (bytes > 0 && bytes < *size) {
      return Fail(ErrorCode::kRefused,
                  fmt::format("a disk of {} GiB is smaller than its image ({} bytes)",
                              order.size_gib, *size));
    }
    bytes = std::max(bytes, *size);
    backing = fmt::format("<backingStore><path>{}</path><format type='{}'/></backingStore>",
                          EscapeXml(order.base_path), EscapeXml(order.base_format));
  }
  return Create(order.name, VolumeXml(order.name, bytes, "qcow2", backing), permit);
}

Status PoolDisks::CreateSeed(const ports::SeedOrder& order, const Permit& permit) {
  auto scratch = ScratchDirectory::Make(options_.scratch);
  if (!scratch) return Fail(ErrorCode::kUnavailable, scratch.error().detail);
  auto path = BuildSeedImage(order, scratch->path());
  if (!path) return std::unexpected(path.error());
  auto image = ReadWholeFile(*path, model::limits::kSeedBytes);
  if (!image) return Fail(ErrorCode::kUnavailable, image.error().detail);
  // A half-sent seed of an earlier run may stand there: a seed is derived data, made anew.
  if (auto deleted = Delete(order.name, permit); !deleted) return deleted;
  const auto size = static_cast<std::int64_t>(image->size());
  if (auto made = Create(order.name, VolumeXml(order.name, size, "raw", ""), permit); !made) {
    return made;
  }
  // libvirt's test driver has no guests that would read it, and takes no bytes.
  if (options_.kind == HostKind::kTest) return {};
  return Upload(order.name, *image);
}

Status PoolDisks::Upload(const std::string& name, const std::string& bytes) {
  auto volume = Find(name);
  if (!volume) return std::unexpected(volume.error());
  if (*volume == nullptr) return Fail(ErrorCode::kUnavailable, "a volume went while it was made");
  const StreamHandle stream(virStreamNew(connection_, 0));
  if (stream == nullptr || virStorageVolUpload(volume->get(), stream.get(), 0, bytes.size(), 0)) {
    return LookFailed("sending to the pool", LastFault());
  }
  // Whatever went wrong, the next attempt sends it again: nothing is unknown.
  return SendAll(stream.get(), bytes);
}

Result<std::string> PoolDisks::PathOfKernel(const std::string& path, const Permit& permit) {
  if (options_.kind != HostKind::kRemoteDaemon || path.empty()) {
    return options_.kind == HostKind::kTest ? path : Disks::PathOfKernel(path, permit);
  }
  auto bytes = ReadWholeFile(path, kKernelBytes);
  if (!bytes) {
    const bool is_absent = bytes.error().code == ErrorCode::kNotFound;
    return Fail(is_absent ? ErrorCode::kRefused : ErrorCode::kUnavailable, bytes.error().detail);
  }
  const std::string name = "vmonce-kernel-" + ToHex(Sha256(*bytes));
  // Volumes cannot be renamed: an empty one beside it says that all of it is there. Two who send at
  // once send the same.
  const std::string whole = name + ".whole";
  auto found = Find(whole);
  if (!found) return std::unexpected(found.error());
  if (*found != nullptr) return PathOf(name);
  const auto size = static_cast<std::int64_t>(bytes->size());
  if (auto made = Create(name, VolumeXml(name, size, "raw", ""), permit); !made) {
    return std::unexpected(made.error());
  }
  if (auto sent = Upload(name, *bytes); !sent) return std::unexpected(sent.error());
  if (auto said = Create(whole, VolumeXml(whole, 1, "raw", ""), permit); !said) {
    return std::unexpected(said.error());
  }
  return PathOf(name);
}

Status PoolDisks::Delete(const std::string& name, const Permit& permit) {
  auto volume = Find(name);
  if (!volume) return std::unexpected(volume.error());
  if (*volume == nullptr) return {};
  if (auto permitted = permit(); !permitted) return permitted;
  if (virStorageVolDelete(volume->get(), 0) == 0) return {};
  const LibvirtFault fault = LastFault();
  if (fault.code == VIR_ERR_NO_STORAGE_VOL) return {};
  return Fail(IsReply(fault, connection_) ? ErrorCode::kUnavailable : ErrorCode::kUnknown,
              fault.message);
}

Result<std::vector<std::string>> PoolDisks::Names() {
  virStorageVolPtr* volumes = nullptr;
  const int count = virStoragePoolListAllVolumes(pool_.get(), &volumes, 0);
  if (count < 0) return LookFailed("listing volumes", LastFault());
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const VolumeHandle volume(volumes[i]);
    names.emplace_back(virStorageVolGetName(volume.get()));
  }
  std::free(volumes);
  return names;
}

std::string PoolDisks::PathOf(const std::string& name) const {
  return fmt::format("{}/{}", target_, name);
}

std::string PoolDisks::ConsolePathOf(const std::string& domain) const {
  return fmt::format("{}/{}.console", target_, domain);
}

Result<ports::ConsoleChunk> PoolDisks::ReadConsole(const std::string& domain, std::int64_t offset,
                                                   std::size_t most) {
  // QEMU made the file behind libvirt's back.
  if (virStoragePoolRefresh(pool_.get(), 0) != 0) {
    return LookFailed("refreshing the storage pool", LastFault());
  }
  auto volume = Find(domain + ".console");
  if (!volume) return std::unexpected(volume.error());
  if (*volume == nullptr) return Fail(ErrorCode::kNotFound, "the VM has no console yet");
  virStorageVolInfo info{};
  if (virStorageVolGetInfo(volume->get(), &info) != 0) {
    return LookFailed("the console", LastFault());
  }
  const ConsoleRange range = RangeOf(offset, most, static_cast<std::int64_t>(info.capacity));
  const auto length = static_cast<std::size_t>(range.end - range.begin);
  if (length == 0) return ports::ConsoleChunk{.next_offset = range.begin};
  const StreamHandle stream(virStreamNew(connection_, 0));
  if (stream == nullptr ||
      virStorageVolDownload(volume->get(), stream.get(),
                            static_cast<unsigned long long>(range.begin), length, 0) != 0) {
    return LookFailed("reading the console", LastFault());
  }
  auto data = Receive(stream.get(), length);
  if (!data) return std::unexpected(data.error());
  const std::int64_t next = range.begin + static_cast<std::int64_t>(data->size());
  return ports::ConsoleChunk{.data = *std::move(data), .next_offset = next};
}

Status PoolDisks::DeleteConsole(const std::string& domain) {
  if (virStoragePoolRefresh(pool_.get(), 0) != 0) {
    return LookFailed("refreshing the storage pool", LastFault());
  }
  return Delete(domain + ".console", [] { return Status(); });
}

Result<std::int64_t> PoolDisks::CapacityGib() {
  virStoragePoolInfo info{};
  if (virStoragePoolGetInfo(pool_.get(), &info) != 0) {
    return LookFailed("the storage pool", LastFault());
  }
  return static_cast<std::int64_t>(info.capacity / kGib);
}

Result<VolumeHandle> PoolDisks::Find(const std::string& name) {
  VolumeHandle volume(virStorageVolLookupByName(pool_.get(), name.c_str()));
  if (volume == nullptr) {
    const LibvirtFault fault = LastFault();
    if (fault.code != VIR_ERR_NO_STORAGE_VOL) return LookFailed("looking for a volume", fault);
  }
  return volume;
}

Result<std::int64_t> PoolDisks::InspectBase(const ports::DiskOrder& order) {
  if (options_.kind == HostKind::kLocalDaemon) {
    return InspectBaseImage(order.base_path, order.base_format);
  }
  const VolumeHandle base(virStorageVolLookupByPath(connection_, order.base_path.c_str()));
  if (base == nullptr) {
    const LibvirtFault fault = LastFault();
    if (fault.code != VIR_ERR_NO_STORAGE_VOL) return LookFailed("looking for the image", fault);
    return Fail(ErrorCode::kNotFound,
                fmt::format("the image {} is in no storage pool of the host", order.base_path));
  }
  if (NamesBackingFile(base.get())) {
    return Fail(ErrorCode::kRefused,
                fmt::format("image {} names another file (a backing file); flatten it with "
                            "qemu-img convert",
                            order.base_path));
  }
  virStorageVolInfo info{};
  if (virStorageVolGetInfo(base.get(), &info) != 0) {
    return LookFailed("the image", LastFault());
  }
  return static_cast<std::int64_t>(info.capacity);
}

Status PoolDisks::Create(const std::string& name, const std::string& xml, const Permit& permit) {
  if (auto permitted = permit(); !permitted) return permitted;
  const VolumeHandle made(virStorageVolCreateXML(pool_.get(), xml.c_str(), 0));
  if (made != nullptr) return {};
  const LibvirtFault fault = LastFault();
  if (fault.code == VIR_ERR_STORAGE_VOL_EXIST) return {};
  if (IsReply(fault, connection_)) {
    if (IsFinal(fault)) return Fail(ErrorCode::kRefused, fault.message);
    auto left = Find(name);
    if (left && *left == nullptr) return Fail(ErrorCode::kUnavailable, fault.message);
  }
  return Fail(ErrorCode::kUnknown, fault.message);
}

}  // namespace vmonce::hypervisor
