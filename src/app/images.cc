#include <fmt/format.h>

#include <filesystem>

#include "app/commands.h"
#include "app/image_upload.h"
#include "app/json_text.h"
#include "client/url.h"
#include "model/image.h"

namespace vmonce::app {
namespace {

namespace json = boost::json;

constexpr Column kImageColumns[] = {
    {"NAME", "name"},      {"KIND", "kind"},          {"ALIASES", "aliases"},
    {"SOURCE", "source"},  {"FORMAT", "disk_format"}, {"BYTES", "size_bytes"},
    {"ADDED", "added_at"},
};

struct AddFlags {
  std::string disk;
  std::string name;
  std::vector<std::string> aliases;
  std::string kernel;
  std::string initrd;
  std::string cmdline;
};

ExitCode ListImages(const Invocation& run) {
  const auto result = Get(run, "/v1/images");
  if (!result.IsSuccess()) return ReportFailure(run, "images", result);
  PrintItems(run.world.terminal, run.globals.format, ListAt(result.json, "items"), kImageColumns);
  return ExitCode::kDone;
}

// "images/debian-12-generic-amd64.qcow2" → "debian-12-generic-amd64".
std::string NameOfFile(const AddFlags& flags) {
  const std::string& file = flags.disk.empty() ? flags.kernel : flags.disk;
  return std::filesystem::path(file).stem().string();
}

// What is wrong with the command itself; empty when nothing is.
std::string MistakeIn(const AddFlags& flags, const std::string& name) {
  if (flags.disk.empty() && flags.kernel.empty()) {
    return "name the disk FILE, or a kernel with --kernel";
  }
  if (flags.kernel.empty() && !(flags.initrd.empty() && flags.cmdline.empty())) {
    return "--initrd and --cmdline belong to a --kernel";
  }
  if (!model::IsImageName(name)) {
    return fmt::format(
        "'{}' is no name for an image: choose one with --name (1 to 63 letters, "
        "digits, '-', '_', '.' or ':')",
        name);
  }
  return "";
}

ExitCode AddImage(const Invocation& run, const AddFlags& flags) {
  const std::string name = flags.name.empty() ? NameOfFile(flags) : flags.name;
  if (const std::string mistake = MistakeIn(flags, name); !mistake.empty()) {
    run.messages.Say("error: image add: " + mistake);
    return ExitCode::kUsage;
  }
  json::object body;
  body["name"] = name;
  body["kind"] = flags.kernel.empty() ? "disk" : "kernel";
  struct Part {
    const char* member;
    const std::string& path;
  };
  for (const Part& part :
       {Part{"disk", flags.disk}, Part{"kernel", flags.kernel}, Part{"initrd", flags.initrd}}) {
    if (part.path.empty()) continue;
    const auto digest = UploadFile(run, part.path);
    if (!digest) return digest.error();
    body[part.member] = ToHex(*digest);
  }
  if (!flags.cmdline.empty()) body["cmdline"] = flags.cmdline;
  if (!flags.aliases.empty())
    body["aliases"] = json::array(flags.aliases.begin(), flags.aliases.end());
  const client::CallResult result = Post(run, "/v1/images", body);
  if (!result.IsSuccess()) return ReportFailure(run, "image " + name, result);
  const json::value* image = At(result.json, "image");
  if (image == nullptr) return ReportForeignAnswer(run, "image " + name);
  run.messages.Say(
      fmt::format("image {}: {}", name,
                  TextAt(result.json, "result") == "created" ? "added" : "already there"));
  PrintItems(run.world.terminal, run.globals.format, {*image}, kImageColumns);
  return ExitCode::kDone;
}

ExitCode RemoveImages(const Invocation& run, const std::vector<std::string>& names) {
  ExitCode code = ExitCode::kDone;
  for (const std::string& name : names) {
    const auto result =
        Change(run, "DELETE", "/v1/images/" + client::PercentEncode(name), NewKey(run.world));
    if (result.IsSuccess()) {
      run.messages.Say(fmt::format("image {}: removed", name));
      continue;
    }
    const ExitCode failed = ReportFailure(run, "image " + name, result);
    if (code == ExitCode::kDone) code = failed;
    if (result.end == client::CallEnd::kInterrupted) break;
  }
  return code;
}

void AddImageAdd(CLI::App& group, ClientCommand& chosen) {
  auto* command = group.add_subcommand("add", "Copy an image into the server's store");
  // Shared: the flags live as long as whoever still may parse into them or run with them.
  const auto flags = std::make_shared<AddFlags>();
  command->add_option("FILE", flags->disk, "A disk in raw or qcow2 format");
  command->add_option("--name", flags->name, "Its name; by default the file's, without its ending");
  command
      ->add_option("--alias", flags->aliases,
                   "Another name for it; taken over from the image that has it")
      ->allow_extra_args(false);
  command->add_option("--kernel", flags->kernel, "A Linux kernel that is started directly");
  command->add_option("--initrd", flags->initrd, "The kernel's initial ramdisk");
  command->add_option("--cmdline", flags->cmdline, "The kernel's command line");
  command->callback([&chosen, flags] {
    chosen = [flags](const Invocation& run) { return AddImage(run, *flags); };
  });
}

void AddImageRemove(CLI::App& group, ClientCommand& chosen) {
  auto* command = group.add_subcommand(
      "remove", "Remove images from the server's store; refused while VMs stand on them");
  // Shared, as above.
  const auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("NAME", *names, "Names, not aliases")->required();
  command->callback([&chosen, names] {
    chosen = [names](const Invocation& run) { return RemoveImages(run, *names); };
  });
}

}  // namespace

void AddImages(CLI::App& app, ClientCommand& chosen) {
  auto* list = app.add_subcommand("images", "List the images that VMs can be made from");
  list->callback([&chosen] { chosen = &ListImages; });
  auto* group = app.add_subcommand("image", "Add, list and remove images");
  group->require_subcommand(1);
  AddImageAdd(*group, chosen);
  auto* listed = group->add_subcommand("list", "The same as `vmonce images`");
  listed->callback([&chosen] { chosen = &ListImages; });
  AddImageRemove(*group, chosen);
}

}  // namespace vmonce::app
