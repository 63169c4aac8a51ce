-- Ways into a VM: host ports reserved for it, and the addresses that its host tells of.

CREATE TABLE forwards (
  host TEXT NOT NULL,
  protocol TEXT NOT NULL CHECK (protocol = 'tcp' OR protocol = 'udp'),
  host_port INTEGER NOT NULL CHECK (host_port BETWEEN 1 AND 65535),
  vm BLOB NOT NULL CHECK (length(vm) = 16),
  PRIMARY KEY (host, protocol, host_port)
) STRICT, WITHOUT ROWID;

CREATE INDEX forwards_vm ON forwards (vm);

ALTER TABLE vms ADD COLUMN forwards TEXT;
ALTER TABLE vms ADD COLUMN addresses TEXT;
