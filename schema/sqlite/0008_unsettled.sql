-- Until when an order whose answer was lost may still take effect on a VM's host. docs/ledger.md says why.

ALTER TABLE vms ADD COLUMN unsettled_until_ms INTEGER NOT NULL DEFAULT 0;
