-- Tokens; who asked for an operation; how many keys a project has. docs/ledger.md says why.

CREATE TABLE tokens (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  project TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role = 'viewer' OR role = 'member' OR role = 'admin'),
  name TEXT NOT NULL,
  prefix TEXT NOT NULL,
  created_by BLOB CHECK (length(created_by) = 16),
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

ALTER TABLE operations ADD COLUMN token BLOB CHECK (length(token) = 16);

ALTER TABLE usage ADD COLUMN live_keys INTEGER NOT NULL DEFAULT 0 CHECK (live_keys >= 0);
INSERT INTO usage (project, vms, cpus, memory_mib, disk_gib, live_keys)
  SELECT project, 0, 0, 0, 0, count(*) FROM operations WHERE key_hash IS NOT NULL GROUP BY project
  ON CONFLICT (project) DO UPDATE SET live_keys = excluded.live_keys;
