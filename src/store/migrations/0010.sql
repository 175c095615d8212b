-- Requests and tokens a minute that all processes of this results root share on one key and model. A row is a quarter of a second: what a killed
-- process had reserved is out of the last minute after a minute, like everything else.
CREATE TABLE rate_uses (
  account TEXT NOT NULL,                -- sha256 over address, key and model
  slot INTEGER NOT NULL,                -- milliseconds since 1970 / 250
  requests INTEGER NOT NULL,
  tokens INTEGER NOT NULL,              -- reserved, and corrected by what the call took
  PRIMARY KEY (account, slot)
) STRICT, WITHOUT ROWID;

-- What the headers of answers said.
CREATE TABLE rate_limits (
  account TEXT PRIMARY KEY,
  rpm INTEGER,
  tpm INTEGER,
  told_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
