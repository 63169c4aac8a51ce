#include "hypervisor/image_header.h"

#include <fmt/format.h>

#include <cstddef>

namespace vmonce::hypervisor {
namespace {

using std::string_view_literals::operator""sv;

struct Magic {
  std::size_t at;
  std::string_view bytes;
  std::string_view what;
  bool is_compressed;
};

// QEMU's other formats, and what people fetch and forget to unpack.
constexpr Magic kOthers[] = {
    {0, "KDMV"sv, "a VMDK disk", false},
    {0, "COWD"sv, "a VMDK disk", false},
    {0, "# Disk DescriptorFile"sv, "a VMDK descriptor", false},
    {0, "vhdxfile"sv, "a VHDX disk", false},
    {0, "conectix"sv, "a VHD disk", false},
    {64, "\x7f\x10\xda\xbe"sv, "a VDI disk", false},
    {0, "QED\0"sv, "a QED disk", false},
    {0, "OOOM"sv, "a COW disk", false},
    {0, "WithoutFreeSpace"sv, "a Parallels disk", false},
    {0, "WithouFreSpacExt"sv, "a Parallels disk", false},
    {0, "LUKS\xba\xbe"sv, "an encrypted (LUKS) disk", false},
    {0, "\x1f\x8b"sv, "compressed (gzip)", true},
    {0, "\xfd\x37zXZ\0"sv, "compressed (xz)", true},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed (zstd)", true},
    {0, "BZh"sv, "compressed (bzip2)", true},
    {0, "PK\x03\x04"sv, "a ZIP archive", true},
    {257, "ustar"sv, "a tar archive", true},
    {0, "<!DOCTYPE"sv, "a web page", true},
    {0, "<html"sv, "a web page", true},
};

bool Has(std::string_view header, std::size_t at, std::string_view bytes) {
  return header.size() >= at && header.substr(at).starts_with(bytes);
}

// The kernel's own boot protocol (Documentation/arch/x86/boot.rst), or an ELF image.
bool IsKernel(std::string_view header) {
  return Has(header, 0x202, "HdrS") || Has(header, 0,
                                           "\x7f"
                                           "ELF");
}

}  // namespace

Result<FileKind> KindOfFile(std::string_view header) {
  if (Has(header, 0, "QFI\xfb")) return FileKind::kQcow2;
  if (IsKernel(header)) return FileKind::kKernel;
  for (const Magic& magic : kOthers) {
    if (!Has(header, magic.at, magic.bytes)) continue;
    return Fail(ErrorCode::kInvalid,
                fmt::format("it is {}; {}", magic.what,
                            magic.is_compressed
                                ? "unpack it first, or fetch the disk itself"
                                : "convert it with `qemu-img convert -O qcow2 FILE NEW.qcow2`"));
  }
  return FileKind::kOther;
}

bool HasBootSector(std::string_view header) { return Has(header, 510, "\x55\xaa"); }

}  // namespace vmonce::hypervisor
