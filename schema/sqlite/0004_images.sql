-- Images of the store (docs/ledger.md). Their files are named by SHA-256 beside the ledger; a VM keeps the
-- whole image it was accepted with in its spec.

CREATE TABLE images (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind = 'disk' OR kind = 'kernel'),
  disk BLOB CHECK (length(disk) = 32),
  disk_format TEXT NOT NULL CHECK (disk_format = '' OR disk_format = 'qcow2' OR disk_format = 'raw'),
  kernel BLOB CHECK (length(kernel) = 32),
  initrd BLOB CHECK (length(initrd) = 32),
  cmdline TEXT NOT NULL,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  added_ms INTEGER NOT NULL,
  CHECK (CASE WHEN kind = 'disk' THEN disk IS NOT NULL AND kernel IS NULL AND initrd IS NULL
              ELSE kernel IS NOT NULL END),
  CHECK ((disk IS NULL) = (disk_format = ''))
) STRICT, WITHOUT ROWID;

CREATE TABLE image_aliases (
  alias TEXT PRIMARY KEY,
  image BLOB NOT NULL CHECK (length(image) = 16)
) STRICT, WITHOUT ROWID;

CREATE INDEX image_aliases_of ON image_aliases (image);
