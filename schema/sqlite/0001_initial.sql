-- The first version. docs/ledger.md says what every table and column is for.
-- Words are compared one by one: SQLite builds a table in memory for every IN of three or more, each
-- time a row is written.

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  project TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (
    kind = 'create' OR kind = 'delete' OR kind = 'start' OR kind = 'stop' OR kind = 'reboot'
    OR kind = 'update'),
  state TEXT NOT NULL CHECK (
    CASE WHEN finished_ms IS NULL
      THEN state = 'accepted' OR state = 'running' OR state = 'verifying'
      ELSE state = 'succeeded' OR state = 'failed' OR state = 'cancelled' END),
  key_hash BLOB CHECK (length(key_hash) = 32),
  key_prefix TEXT NOT NULL,
  fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
  fingerprint_version INTEGER NOT NULL,
  canonical_request TEXT NOT NULL,
  intent TEXT NOT NULL,
  face TEXT NOT NULL,
  sealed_secrets BLOB,
  accepted_by TEXT,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  fence INTEGER NOT NULL CHECK (fence >= 0),
  lease_owner TEXT NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  is_stuck INTEGER NOT NULL CHECK (is_stuck IN (0, 1)),
  vm_ids BLOB NOT NULL CHECK (length(vm_ids) % 16 = 0),
  items TEXT NOT NULL,
  failure TEXT,
  accepted_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  finished_ms INTEGER CHECK (finished_ms IS NULL OR lease_owner = 'unleased')
) STRICT;

CREATE UNIQUE INDEX operations_key ON operations (project, key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX operations_to_do ON operations (max(due_ms, lease_until_ms))
  WHERE finished_ms IS NULL;
CREATE INDEX operations_on_vm ON operations (vm_ids) WHERE kind <> 'create';
CREATE INDEX operations_ended_short ON operations (finished_ms)
  WHERE finished_ms IS NOT NULL AND kind NOT IN ('create', 'delete');
CREATE INDEX operations_ended_long ON operations (finished_ms)
  WHERE finished_ms IS NOT NULL AND (kind = 'delete' OR (kind = 'create' AND state = 'failed'));

CREATE TABLE vms (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  operation BLOB NOT NULL CHECK (length(operation) = 16),
  item_index INTEGER NOT NULL,
  key_prefix TEXT NOT NULL,
  spec TEXT NOT NULL,
  mac TEXT NOT NULL,
  labels TEXT NOT NULL,
  state TEXT NOT NULL CHECK (
    CASE WHEN deleted_ms IS NULL
      THEN state = 'pending' OR state = 'creating' OR state = 'ready' OR state = 'failed'
        OR state = 'missing' OR state = 'deleting'
      ELSE state = 'deleted' END),
  desired TEXT NOT NULL CHECK (desired IN ('running', 'stopped')),
  observed TEXT NOT NULL CHECK (
    observed = 'unknown' OR observed = 'running' OR observed = 'stopped' OR observed = 'paused'
    OR observed = 'absent'),
  host TEXT,
  version INTEGER NOT NULL,
  holder BLOB CHECK (length(holder) = 16),
  delete_operation BLOB CHECK (length(delete_operation) = 16),
  holds_reservation INTEGER NOT NULL CHECK (holds_reservation IN (0, 1)),
  failure TEXT,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  deleted_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX vms_name ON vms (project, name) WHERE holds_reservation = 1;
CREATE INDEX vms_former_name ON vms (project, name) WHERE holds_reservation = 0;
CREATE INDEX vms_live ON vms (project, id) WHERE deleted_ms IS NULL;
CREATE INDEX vms_on_host ON vms (host) WHERE host IS NOT NULL AND deleted_ms IS NULL;
CREATE INDEX vms_deleted ON vms (deleted_ms) WHERE deleted_ms IS NOT NULL;

CREATE TABLE usage (
  project TEXT PRIMARY KEY,
  vms INTEGER NOT NULL CHECK (vms >= 0),
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  disk_gib INTEGER NOT NULL CHECK (disk_gib >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE totals (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  vms INTEGER NOT NULL CHECK (vms >= 0),
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  disk_gib INTEGER NOT NULL CHECK (disk_gib >= 0),
  unfinished INTEGER NOT NULL CHECK (unfinished >= 0),
  succeeded INTEGER NOT NULL CHECK (succeeded >= 0),
  failed INTEGER NOT NULL CHECK (failed >= 0),
  cancelled INTEGER NOT NULL CHECK (cancelled >= 0),
  last_sequence INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE hosts (
  id TEXT PRIMARY KEY,
  uri TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state = 'active' OR state = 'draining' OR state = 'dead'),
  is_registered INTEGER NOT NULL CHECK (is_registered IN (0, 1)),
  capacity_vms INTEGER NOT NULL,
  capacity_cpus INTEGER NOT NULL,
  capacity_memory_mib INTEGER NOT NULL,
  capacity_disk_gib INTEGER NOT NULL,
  reserved_vms INTEGER NOT NULL CHECK (reserved_vms >= 0),
  reserved_cpus INTEGER NOT NULL CHECK (reserved_cpus >= 0),
  reserved_memory_mib INTEGER NOT NULL CHECK (reserved_memory_mib >= 0),
  reserved_disk_gib INTEGER NOT NULL CHECK (reserved_disk_gib >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE timeline (
  operation INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  replica TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  item_index INTEGER NOT NULL,
  event TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (operation, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  number INTEGER PRIMARY KEY,
  id BLOB NOT NULL CHECK (length(id) = 16),
  type TEXT NOT NULL,
  project TEXT NOT NULL,
  subject TEXT NOT NULL,
  data TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE tombstones (
  project TEXT NOT NULL,
  key_hash BLOB NOT NULL CHECK (length(key_hash) IN (16, 32)),
  fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
  vm_ids BLOB NOT NULL CHECK (length(vm_ids) % 16 = 0),
  made_vms INTEGER NOT NULL CHECK (made_vms IN (0, 1)),
  final_state TEXT NOT NULL CHECK (
    final_state = 'succeeded' OR final_state = 'failed' OR final_state = 'cancelled'),
  first_seen_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  PRIMARY KEY (project, key_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstones_expiry ON tombstones (expires_ms);

CREATE TABLE tombstone_vms (
  id BLOB PRIMARY KEY CHECK (length(id) = 16)
) STRICT, WITHOUT ROWID;

CREATE TABLE strays (
  host TEXT NOT NULL,
  vm BLOB NOT NULL CHECK (length(vm) = 16),
  first_seen_ms INTEGER NOT NULL,
  sightings INTEGER NOT NULL,
  is_quarantined INTEGER NOT NULL CHECK (is_quarantined IN (0, 1)),
  PRIMARY KEY (host, vm)
) STRICT, WITHOUT ROWID;
