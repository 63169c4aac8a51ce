// Disks of the image store in the pool of another machine: sent in pieces, and used only once an
// empty volume beside the disk says that all of it is there (volumes cannot be renamed).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/unique_fd.h"
#include "hypervisor/pool_disks.h"
#include "hypervisor/xml_text.h"
#include "model/image_limits.h"
#include "model/label.h"

namespace vmonce::hypervisor {
namespace {

std::string WholeOf(const std::string& volume) { return volume + ".whole"; }

struct ImageFile {
  UniqueFd file;
  std::int64_t bytes = 0;
};

Result<ImageFile> OpenImage(const std::string& path) {
  ImageFile image{UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), 0};
  struct stat status{};
  if (!image.file.IsOpen() || fstat(image.file.get(), &status) != 0) {
    const Error error = ErrnoError(errno, "image " + path);
    const bool is_absent = error.code == ErrorCode::kNotFound;
    return Fail(is_absent ? ErrorCode::kNotFound : ErrorCode::kUnavailable, error.detail);
  }
  image.bytes = status.st_size;
  return image;
}

std::string BackingOf(virStorageVolPtr volume) {
  const LibvirtText xml(virStorageVolGetXMLDesc(volume, 0));
  const XmlDocument document = xml == nullptr ? nullptr : ParseXml(xml.get());
  const xmlNode* root = document == nullptr ? nullptr : xmlDocGetRootElement(document.get());
  return XmlText(XmlChild(XmlChild(root, "backingStore"), "path")).value_or("");
}

// Sends what lies from `offset` on until it is all sent or `is_over` says so; how far it came.
Result<std::int64_t> SendPiece(virStreamPtr stream, const ImageFile& image, std::int64_t offset,
                               const Permit& permit, const std::function<bool()>& is_over) {
  std::string buffer(model::limits::kImageStreamBytes, '\0');
  do {
    if (auto permitted = permit(); !permitted) return std::unexpected(permitted.error());
    const auto most =
        std::min<std::int64_t>(static_cast<std::int64_t>(buffer.size()), image.bytes - offset);
    const ssize_t got =
        pread(image.file.get(), buffer.data(), static_cast<std::size_t>(most), offset);
    if (got <= 0) return Fail(ErrorCode::kUnavailable, "the image cannot be read");
    for (ssize_t done = 0; done < got;) {
      const int sent =
          virStreamSend(stream, buffer.data() + done, static_cast<std::size_t>(got - done));
      if (sent < 0) return LookFailed("sending to the pool", LastFault());
      done += sent;
    }
    offset += got;
  } while (offset < image.bytes && !is_over());
  return offset;
}

}  // namespace

Result<ports::ImageTransfer> PoolDisks::SendImage(const ports::ImageOrder& order,
                                                  std::int64_t offset, const Permit& permit,
                                                  const std::function<bool()>& is_over) {
  if (options_.kind != HostKind::kRemoteDaemon) return ports::ImageTransfer{};
  const std::string name = model::ImageVolumeName(ledger_, order.digest);
  auto whole = Find(WholeOf(name));
  if (!whole) return std::unexpected(whole.error());
  auto volume = Find(name);
  if (!volume) return std::unexpected(volume.error());
  if (*whole != nullptr && *volume != nullptr) return ports::ImageTransfer{};
  auto image = OpenImage(order.path);
  if (!image) return std::unexpected(image.error());
  if (*volume == nullptr) {
    offset = 0;
    if (auto made = CreateRaw(name, image->bytes, permit); !made) {
      return std::unexpected(made.error());
    }
    volume = Find(name);
    if (!volume) return std::unexpected(volume.error());
    if (*volume == nullptr) return Fail(ErrorCode::kUnavailable, "a volume went while it was made");
  }
  const StreamHandle stream(virStreamNew(connection_, 0));
  if (stream == nullptr ||
      virStorageVolUpload(volume->get(), stream.get(), static_cast<unsigned long long>(offset), 0,
                          0) != 0) {
    return LookFailed("sending to the pool", LastFault());
  }
  auto sent = SendPiece(stream.get(), *image, offset, permit, is_over);
  if (!sent) {
    virStreamAbort(stream.get());
    return std::unexpected(sent.error());
  }
  if (virStreamFinish(stream.get()) != 0) return LookFailed("sending to the pool", LastFault());
  ports::ImageTransfer transfer{
      .sent = *sent, .bytes = image->bytes, .is_complete = *sent == image->bytes};
  if (!transfer.is_complete) return transfer;
  if (auto said = CreateRaw(WholeOf(name), 1, permit); !said) return std::unexpected(said.error());
  return transfer;
}

Result<std::string> PoolDisks::PathOfImage(const Digest& digest) {
  const std::string name = model::ImageVolumeName(ledger_, digest);
  auto whole = Find(WholeOf(name));
  if (!whole) return std::unexpected(whole.error());
  if (*whole != nullptr) return PathOf(name);
  return Fail(ErrorCode::kUnavailable, "the image was not brought to the host yet");
}

Result<std::vector<Digest>> PoolDisks::Images() {
  if (options_.kind != HostKind::kRemoteDaemon) return std::vector<Digest>();
  auto names = Names();
  if (!names) return std::unexpected(names.error());
  std::vector<Digest> images;
  for (const std::string& name : *names) {
    const std::string volume = name.ends_with(".whole") ? name.substr(0, name.size() - 6) : name;
    if (const auto digest = model::ImageOfVolume(ledger_, volume)) images.push_back(*digest);
  }
  std::ranges::sort(images);
  const auto twice = std::ranges::unique(images);
  images.erase(twice.begin(), twice.end());
  return images;
}

// What says that it is whole goes first: whoever makes a disk over it looks at that before and
// after, so that either the disk is seen here, or what was made is taken back there.
Status PoolDisks::RemoveImage(const Digest& digest) {
  if (options_.kind != HostKind::kRemoteDaemon) return {};
  const std::string name = model::ImageVolumeName(ledger_, digest);
  const Permit always = [] { return Status(); };
  if (auto gone = Delete(WholeOf(name), always); !gone) return gone;
  auto is_used = IsBacking(PathOf(name));
  if (!is_used) return std::unexpected(is_used.error());
  if (!*is_used) return Delete(name, always);
  if (auto again = CreateRaw(WholeOf(name), 1, always); !again) return again;
  return Fail(ErrorCode::kConflict, "a disk stands on the image");
}

Result<bool> PoolDisks::IsBacking(const std::string& path) {
  virStorageVolPtr* volumes = nullptr;
  const int count = virStoragePoolListAllVolumes(pool_.get(), &volumes, 0);
  if (count < 0) return LookFailed("listing volumes", LastFault());
  bool is_backing = false;
  for (int i = 0; i < count; ++i) {
    const VolumeHandle volume(volumes[i]);
    is_backing = is_backing || BackingOf(volume.get()) == path;
  }
  std::free(volumes);
  return is_backing;
}

}  // namespace vmonce::hypervisor
