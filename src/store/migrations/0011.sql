-- What the process that works on a run would know alone: its slots, engines and limiters, every two seconds while they change.
CREATE TABLE live_states (
  run_id INTEGER PRIMARY KEY REFERENCES runs (id),
  at_ms INTEGER NOT NULL,               -- milliseconds since 1970
  data TEXT NOT NULL                    -- JSON: {slots, engines, models}
) STRICT;
