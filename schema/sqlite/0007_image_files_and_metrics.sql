-- Image files that overlays stand on; the role of who reads the metrics. docs/ledger.md says why.
CREATE TABLE image_files (
  path TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  modified_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  kept_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A role of its own for who reads the metrics. A CHECK cannot be altered; there are few tokens.
CREATE TABLE tokens_with_metrics (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  project TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role = 'metrics' OR role = 'viewer' OR role = 'member' OR role = 'admin'),
  name TEXT NOT NULL,
  prefix TEXT NOT NULL,
  created_by BLOB CHECK (length(created_by) = 16),
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

INSERT INTO tokens_with_metrics
  SELECT id, hash, project, role, name, prefix, created_by, created_ms, expires_ms, revoked_ms FROM tokens;
DROP TABLE tokens;
ALTER TABLE tokens_with_metrics RENAME TO tokens;
