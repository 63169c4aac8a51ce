// The images, and the files that are sent for the store.
#include <fmt/format.h>

#include "api/rest/handlers.h"
#include "api/rest/parse_body.h"
#include "api/rest/parse_headers.h"
#include "api/rest/parse_query.h"
#include "api/rest/reply.h"
#include "base/json_fields.h"
#include "model/image_limits.h"
#include "model/limits.h"

namespace vmonce::rest {
namespace {

namespace json = boost::json;
namespace limits = model::limits;

constexpr std::size_t kDigestDigits = 64;

http::Response NoContent() {
  http::Response response;
  response.status = 204;
  return response;
}

std::optional<Digest> ReadDigest(JsonReader& reader, std::string_view name) {
  const auto text = reader.String(name, {.max_bytes = kDigestDigits});
  if (!text) return std::nullopt;
  const auto digest = ParseDigest(*text);
  if (!digest) reader.AddProblem(name, "must be a SHA-256 in 64 lower-case hexadecimal digits");
  return digest;
}

std::string ReadImageName(JsonReader& reader) {
  reader.Require({"name"});
  const auto name = reader.String("name", {.max_bytes = limits::kNameBytes});
  if (name && !model::IsImageName(*name)) {
    reader.AddProblem("name", "must be letters, digits, '-', '_', '.' and ':', with no '.' first");
  }
  return name.value_or("");
}

std::vector<std::string> ReadAliases(JsonReader& reader) {
  const auto aliases =
      reader.Strings("aliases", {.max = limits::kImageAliases}, {.max_bytes = limits::kNameBytes});
  if (aliases && !std::ranges::all_of(*aliases, model::IsImageName)) {
    reader.AddProblem("aliases", "must each be a name as `name` is one");
  }
  return aliases.value_or(std::vector<std::string>());
}

void CheckFiles(JsonReader& reader, const service::AddImageRequest& request) {
  if (request.kind == model::ImageKind::kKernel) {
    reader.Require({"kernel"});
    return;
  }
  reader.Require({"disk"});
  for (const std::string_view name : {"kernel", "initrd", "cmdline"}) {
    if (reader.Has(name)) reader.AddProblem(name, "is for images of kind kernel only");
  }
}

service::AddImageRequest ReadImage(JsonReader& reader) {
  service::AddImageRequest request;
  request.name = ReadImageName(reader);
  reader.Require({"kind"});
  const auto kind = reader.OneOf("kind", {"disk", "kernel"});
  request.kind = model::ParseImageKind(kind.value_or("disk")).value_or(model::ImageKind::kDisk);
  request.disk = ReadDigest(reader, "disk");
  request.disk_format = reader.OneOf("disk_format", {"qcow2", "raw"}).value_or("");
  request.kernel = ReadDigest(reader, "kernel");
  request.initrd = ReadDigest(reader, "initrd");
  request.cmdline =
      reader.String("cmdline", {.min_bytes = 0, .max_bytes = limits::kCmdlineBytes}).value_or("");
  request.aliases = ReadAliases(reader);
  if (kind) CheckFiles(reader, request);
  if (!request.disk && !request.disk_format.empty() && !reader.Has("disk")) {
    reader.AddProblem("disk_format", "is given without disk");
  }
  return request;
}

http::Response AddImageNow(const Face& face, const http::Request& request) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) return Reply(*problem);
  const Parsed<service::Asked> asked = ParseAsked(request, "/v1/images");
  if (!asked) return Reply(asked.error());
  if (!asked->request.body.is_object()) {
    return Reply(InvalidRequest({{"", "the body must be a JSON object"}}));
  }
  JsonReader reader(asked->request.body.get_object(), "");
  const service::AddImageRequest wanted = ReadImage(reader);
  std::vector<model::FieldProblem> fields;
  for (FieldProblem& field : reader.Finish()) {
    fields.push_back({std::move(field.pointer), std::move(field.detail)});
  }
  if (!fields.empty()) return Reply(InvalidRequest(std::move(fields)));
  const auto added = face.parts.images.Add(wanted);
  if (!added) return Reply(added.error());
  json::object body;
  body["result"] = added->is_new ? "created" : "existing";
  body["image"] = JsonOf(added->image);
  return http::JsonResponse(added->is_new ? 201 : 200, json::serialize(body));
}

http::Response RemoveImageNow(const Face& face, const http::Request& request) {
  const std::string& name = request.PathParam("name");
  const Parsed<service::Asked> asked = ParseBare(request, "/v1/images/" + name);
  if (!asked) return Reply(asked.error());
  const auto removed = face.parts.images.Remove(name);
  return removed ? NoContent() : Reply(removed.error());
}

Parsed<Digest> ParseFileName(const http::Request& request) {
  const auto digest = ParseDigest(request.PathParam("sha256"));
  if (digest) return *digest;
  return std::unexpected(InvalidRequest(
      {{"sha256", "a file is named by its SHA-256 in 64 lower-case hexadecimal digits"}}));
}

// Bytes are no JSON: what else a change must say of itself stays the same.
Parsed<void> CheckFileSender(const http::Request& request) {
  if (request.body.empty()) return CheckSender(request);
  const auto type = request.headers.Find("content-type");
  if (type && http::MediaType(*type) == "application/octet-stream") return {};
  model::Problem problem;
  problem.code = "unsupported_media_type";
  problem.detail = "The part of a file needs Content-Type: application/octet-stream";
  return std::unexpected(std::move(problem));
}

http::Response PutImageFileNow(const Face& face, const http::Request& request) {
  QueryReader query(request);
  ports::ImagePart part;
  part.size = query.Int("size", {1, limits::kImageFileBytes}).value_or(0);
  part.offset = query.Int("offset", {0, limits::kImageFileBytes}).value_or(0);
  if (part.size == 0) query.AddProblem("size", "is required: how many bytes the whole file has");
  if (const std::optional<model::Problem> problem = query.Finish()) return Reply(*problem);
  const Parsed<Digest> digest = ParseFileName(request);
  if (!digest) return Reply(digest.error());
  if (const Parsed<void> sender = CheckFileSender(request); !sender) return Reply(sender.error());
  part.digest = *digest;
  part.bytes = request.body;
  const auto progress = face.parts.images.Write(part);
  if (!progress) return Reply(progress.error());
  json::object body;
  body["sha256"] = ToHex(*digest);
  body["size"] = part.size;
  body["received"] = progress->received;
  body["is_complete"] = progress->is_complete;
  return http::JsonResponse(200, json::serialize(body));
}

http::Response DeleteImageFileNow(const Face& face, const http::Request& request) {
  const Parsed<Digest> digest = ParseFileName(request);
  if (!digest) return Reply(digest.error());
  const Parsed<service::Asked> asked = ParseBare(request, "/v1/image-files/" + ToHex(*digest));
  if (!asked) return Reply(asked.error());
  face.parts.images.Abandon(*digest);
  return NoContent();
}

}  // namespace

void ListImages(const FacePointer& face, http::Request request, http::Responder respond) {
  if (const std::optional<model::Problem> problem = RefuseQuery(request)) {
    respond(Reply(*problem));
    return;
  }
  const auto stored = face->parts.images.List();
  if (!stored) {
    respond(Reply(stored.error()));
    return;
  }
  json::array items;
  for (const model::Image& image : face->parts.queries.Images()) {
    json::object item = JsonOf(image);
    if (auto problem = face->parts.queries.ProblemOf(image)) item["problem"] = *std::move(problem);
    items.push_back(std::move(item));
  }
  for (const model::StoredImage& image : *stored) items.push_back(JsonOf(image));
  respond(ReplyItems(std::move(items)));
}

void AddImage(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(AddImageNow(*face, request));
}

void RemoveImage(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(RemoveImageNow(*face, request));
}

void PutImageFile(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(PutImageFileNow(*face, request));
}

void DeleteImageFile(const FacePointer& face, http::Request request, http::Responder respond) {
  respond(DeleteImageFileNow(*face, request));
}

}  // namespace vmonce::rest
