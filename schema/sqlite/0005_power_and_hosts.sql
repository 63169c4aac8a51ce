-- Restarts after a host's failure, hosts that come back from the dead, and what left them meanwhile.

ALTER TABLE vms ADD COLUMN stopped_by TEXT NOT NULL DEFAULT 'none'
  CHECK (stopped_by = 'none' OR stopped_by = 'guest' OR stopped_by = 'person' OR stopped_by = 'host');
ALTER TABLE vms ADD COLUMN restart TEXT NOT NULL DEFAULT 'host-failure'
  CHECK (restart = 'host-failure' OR restart = 'never');
ALTER TABLE vms ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0 CHECK (restarts >= 0);
ALTER TABLE vms ADD COLUMN restarted_ms INTEGER;

ALTER TABLE hosts ADD COLUMN is_returning INTEGER NOT NULL DEFAULT 0 CHECK (is_returning IN (0, 1));

CREATE TABLE former_hosts (
  vm BLOB NOT NULL CHECK (length(vm) = 16),
  host TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (vm, host)
) STRICT, WITHOUT ROWID;
