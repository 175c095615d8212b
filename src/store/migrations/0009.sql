-- What people ask of a run while its process works on it, from another terminal or from the viewer, and what the process answered.
CREATE TABLE controls (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  asked_at TEXT NOT NULL,
  asked_by TEXT NOT NULL,               -- user@host and from where
  command TEXT NOT NULL,                -- pause, resume, workers, budget, cancel, drain; another word is refused
  argument TEXT,
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'taken', 'done', 'refused', 'withdrawn')),
  answered_at TEXT,
  answer TEXT                           -- a sentence: what was done, or why not
) STRICT;
CREATE INDEX controls_open ON controls (run_id, id) WHERE state IN ('open', 'taken');
