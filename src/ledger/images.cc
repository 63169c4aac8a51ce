#include "ledger/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/image_limits.h"

namespace vmonce::ledger {
namespace {

using ports::ImageAddition;
using ports::ImageRemoval;

constexpr std::string_view kImageColumns =
    "id, name, kind, disk, disk_format, kernel, initrd, cmdline, bytes, added_ms";

std::optional<Digest> MaybeHash(Query& query) {
  if (!query.IsNull()) return query.Hash();
  query.Skip();
  return std::nullopt;
}

model::StoredImage ReadImage(Db& db, Query& query) {
  model::StoredImage image;
  image.id = query.Id();
  image.name = query.Text();
  const auto kind = model::ParseImageKind(query.Text());
  if (!kind) db.Fail(ErrorCode::kInternal, "an image's kind cannot be read");
  image.kind = kind.value_or(model::ImageKind::kDisk);
  image.disk = MaybeHash(query);
  image.disk_format = query.Text();
  image.kernel = MaybeHash(query);
  image.initrd = MaybeHash(query);
  image.cmdline = query.Text();
  image.bytes = query.Int();
  image.added = query.At();
  return image;
}

std::vector<std::string> AliasesOf(Db& db, const Uuid& image) {
  std::vector<std::string> aliases;
  Query query = db.Prepare("SELECT alias FROM image_aliases WHERE image = ?1 ORDER BY alias");
  query.Bind(image);
  while (query.Next()) aliases.push_back(query.Text());
  return aliases;
}

std::optional<model::StoredImage> FindImage(Db& db, std::string_view name) {
  static const std::string sql =
      fmt::format("SELECT {} FROM images WHERE name = ?1", kImageColumns);
  std::optional<model::StoredImage> image;
  {
    Query query = db.Prepare(sql);
    if (query.Bind(name).Next()) image = ReadImage(db, query);
  }
  if (image) image->aliases = AliasesOf(db, image->id);
  return image;
}

bool IsAlias(Db& db, const std::string& name) {
  Query query = db.Prepare("SELECT 1 FROM image_aliases WHERE alias = ?1");
  return query.Bind(name).Next();
}

bool IsFull(Db& db) {
  Query query = db.Prepare("SELECT count(*) FROM images");
  return query.Next() && query.Int() >= model::limits::kStoredImages;
}

// A name or alias of the new image that means another one for good.
std::string InTheWay(Db& db, const model::StoredImage& image,
                     const std::optional<model::StoredImage>& there) {
  if (there && !there->HasContentOf(image)) return image.name;
  if (!there && IsAlias(db, image.name)) return image.name;
  for (const std::string& alias : image.aliases) {
    if (alias == image.name || FindImage(db, alias)) return alias;
  }
  return "";
}

void Insert(Db& db, const model::StoredImage& image) {
  static const std::string sql = fmt::format(
      "INSERT INTO images ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", kImageColumns);
  db.Run(sql, image.id, image.name, ToString(image.kind), image.disk, image.disk_format,
         image.kernel, image.initrd, image.cmdline, image.bytes, image.added);
}

// The id stands in the pinned image of a spec and, being ours and random, nowhere else by chance;
// the first condition is cheap, the second is exact. A scan: images are removed by people, and an
// index would cost every create.
std::int64_t UsersOf(Db& db, const Uuid& image) {
  Query query = db.Prepare(
      "SELECT count(*) FROM vms WHERE deleted_ms IS NULL AND instr(spec, ?1) > 0 "
      "AND json_extract(spec, '$.image.id') = ?1");
  return query.Bind(ToString(image)).Next() ? query.Int() : 0;
}

}  // namespace

ImageAddition AddImage(Tx& tx, const model::StoredImage& image) {
  ImageAddition addition;
  std::optional<model::StoredImage> there = FindImage(tx.db, image.name);
  addition.in_the_way = InTheWay(tx.db, image, there);
  if (!addition.in_the_way.empty()) {
    addition.kind = ImageAddition::Kind::kNameTaken;
    return addition;
  }
  addition.kind = there ? ImageAddition::Kind::kThere : ImageAddition::Kind::kAdded;
  if (!there) {
    if (IsFull(tx.db)) {
      addition.kind = ImageAddition::Kind::kFull;
      return addition;
    }
    there = image;
    there->added = tx.now;
    Insert(tx.db, *there);
  }
  for (const std::string& alias : image.aliases) {
    tx.db.Run("INSERT OR REPLACE INTO image_aliases (alias, image) VALUES (?1, ?2)", alias,
              there->id);
  }
  there->aliases = AliasesOf(tx.db, there->id);
  addition.image = std::move(*there);
  return addition;
}

ImageRemoval RemoveImage(Tx& tx, std::string_view name) {
  std::optional<model::StoredImage> image = FindImage(tx.db, name);
  if (!image) return {.kind = ImageRemoval::Kind::kAbsent, .image = {}};
  const std::int64_t users = UsersOf(tx.db, image->id);
  if (users > 0) return {.kind = ImageRemoval::Kind::kInUse, .users = users, .image = {}};
  tx.db.Run("DELETE FROM image_aliases WHERE image = ?1", image->id);
  tx.db.Run("DELETE FROM images WHERE id = ?1", image->id);
  return {.kind = ImageRemoval::Kind::kRemoved, .image = *std::move(image)};
}

std::vector<model::StoredImage> StoredImages(Db& db) {
  static const std::string sql = fmt::format("SELECT {} FROM images ORDER BY name", kImageColumns);
  std::vector<model::StoredImage> images;
  {
    Query query = db.Prepare(sql);
    while (query.Next()) images.push_back(ReadImage(db, query));
  }
  for (model::StoredImage& image : images) image.aliases = AliasesOf(db, image.id);
  return images;
}

bool IsImageThere(Db& db, const model::Image& image) {
  if (image.id.empty()) return true;
  const std::optional<Uuid> id = ParseUuid(image.id);
  if (!id) return false;
  Query query = db.Prepare("SELECT 1 FROM images WHERE id = ?1");
  return query.Bind(*id).Next();
}

}  // namespace vmonce::ledger
