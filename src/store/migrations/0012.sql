-- Engines of a run, also those that joined or left while it worked, and which attempt ran on which of them. Runs on one engine have none.
CREATE TABLE engines (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  name TEXT NOT NULL,                   -- a Docker context or an address
  slots INTEGER NOT NULL,               -- environments at one time; 0 means no limit
  labels TEXT NOT NULL,                 -- JSON: names and values that people gave it
  origin TEXT NOT NULL,                 -- config, file or person
  joined_at TEXT NOT NULL,
  state TEXT NOT NULL,                  -- ready, silent, draining, lost, left
  state_at TEXT NOT NULL,
  reason TEXT,                          -- why it is lost, in a sentence
  platform TEXT,                        -- NULL here and below where it is not known
  memory_bytes INTEGER,
  free_bytes INTEGER,                   -- free space of its disk when it was last asked
  UNIQUE (run_id, name)
) STRICT;

CREATE TABLE leases (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  engine_id INTEGER NOT NULL REFERENCES engines (id),
  began_at TEXT NOT NULL,
  ended_at TEXT,
  how TEXT                              -- closed, lost, removed, moved (before anything had run there), process_lost
) STRICT;
CREATE INDEX leases_of_attempt ON leases (attempt_id);
CREATE INDEX leases_on_engine ON leases (engine_id);
