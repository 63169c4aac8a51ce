-- Hosts whose machines a rebuild has not read yet. docs/ledger.md says why.

ALTER TABLE hosts ADD COLUMN is_unread INTEGER NOT NULL DEFAULT 0 CHECK (is_unread IN (0, 1));
