-- What the gate said about an arm of a run. The newest verdict of an arm counts: a night whose gate failed is no baseline by itself.
CREATE TABLE verdicts (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  arm TEXT NOT NULL,
  baseline TEXT,                        -- label of what it was judged against; NULL while nothing comparable was named
  verdict TEXT,                         -- regressed, flaky, improved, inconclusive; NULL: it was begun and never ended
  exit_code INTEGER,                    -- 0 every rule held, 1 a rule failed, 3 not all could be measured again; NULL: never ended
  failed TEXT NOT NULL DEFAULT '[]',    -- JSON: the rules that failed
  judged_at TEXT NOT NULL
) STRICT;
CREATE INDEX verdicts_by_run ON verdicts (run_id);
