-- The record of all runs in a results root. Plain SQL a person can query; times are ISO 8601 UTC texts unless the name ends in _ms.
-- Money is integer nano-dollars; NULL is unknown and never 0.

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL CHECK (status IN ('running', 'paused', 'complete', 'incomplete', 'budget', 'interrupted', 'failed')),
  created_at TEXT NOT NULL,
  finished_at TEXT,
  config TEXT NOT NULL,                 -- resolved configuration, JSON
  config_hash TEXT NOT NULL,            -- over its identity fields
  manifest TEXT NOT NULL,               -- JSON; exported as run.json
  dataset_source TEXT NOT NULL,
  dataset_revision TEXT,
  dataset_hash TEXT NOT NULL,           -- sha256 over the selected rows
  budget_nano INTEGER,                  -- run budget; NULL means none
  emit_empty INTEGER NOT NULL DEFAULT 0 CHECK (emit_empty IN (0, 1)),
  imported INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1))
) STRICT;

CREATE TABLE arms (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  model TEXT NOT NULL,                  -- model_name_or_path of its predictions
  config TEXT NOT NULL,                 -- JSON: agent, environment, model
  UNIQUE (run_id, name)
) STRICT;

CREATE TABLE instances (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  position INTEGER NOT NULL,            -- place in the selection
  instance_id TEXT NOT NULL,
  repo TEXT NOT NULL,
  difficulty TEXT NOT NULL,
  image TEXT NOT NULL,
  row_hash TEXT NOT NULL,               -- sha256 of the row
  row TEXT NOT NULL,                    -- the normalised row, JSON
  weight REAL NOT NULL DEFAULT 1,       -- of a stratified sample
  UNIQUE (run_id, instance_id)
) STRICT;

CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  arm_id INTEGER NOT NULL REFERENCES arms (id),
  instance_pk INTEGER NOT NULL REFERENCES instances (id),
  epoch INTEGER NOT NULL DEFAULT 1 CHECK (epoch >= 1),
  position INTEGER NOT NULL,            -- order in which trials are started
  state TEXT NOT NULL CHECK (state IN ('pending', 'leased', 'running', 'sealed')),
  lease_owner TEXT,                     -- host:boot:pid:start
  lease_at_ms INTEGER,                  -- last heartbeat
  final_attempt_id INTEGER REFERENCES attempts (id),
  not_run_reason TEXT,                  -- budget_stopped, auth_failed ... while no attempt was made
  UNIQUE (arm_id, instance_pk, epoch)
) STRICT;
CREATE INDEX trials_by_run ON trials (run_id, state, position);

CREATE TABLE attempts (
  id INTEGER PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trials (id),
  number INTEGER NOT NULL CHECK (number >= 1),
  state TEXT NOT NULL CHECK (state IN ('running', 'ended')),
  slot INTEGER,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  exit_reason TEXT,
  exit_class TEXT CHECK (exit_class IS NULL OR exit_class IN ('agent', 'limit', 'model', 'infra', 'config', 'cancelled', 'not_run')),
  exit_detail TEXT,                     -- oom, killed, expired; the phase of a stall
  exit_status TEXT,                     -- mini-swe-agent's word
  error_message TEXT,
  error_evidence TEXT,                  -- JSON for debugging, redacted
  submission BLOB,                      -- submitted bytes, untouched; NULL when nothing was submitted
  captured_patch BLOB,                  -- what the harness found in the tree
  patch_source TEXT CHECK (patch_source IS NULL OR patch_source IN ('submitted', 'captured_at_exit', 'none')),
  patch_state TEXT CHECK (patch_state IS NULL OR patch_state IN ('ok', 'empty', 'invalid', 'oversized')),
  model_patch TEXT,                     -- what the prediction carries, by run.patch
  patch_sha256 TEXT,                    -- of model_patch
  steps INTEGER NOT NULL DEFAULT 0,
  container_id TEXT,
  image_digest TEXT,
  history TEXT CHECK (history IS NULL OR history IN ('sealed', 'absent', 'failed', 'skipped')),
  transport TEXT,
  oom_kills INTEGER NOT NULL DEFAULT 0,
  elapsed_ms INTEGER,                   -- from taking the slot to the end
  working_ms INTEGER,                   -- without pulls, rate waits and back-off
  suspicion TEXT NOT NULL DEFAULT '[]', -- JSON array of {rule, step, evidence}
  notes TEXT NOT NULL DEFAULT '[]',     -- JSON array of sentences
  config TEXT,                          -- JSON: the arm's resolved config with what this attempt added, for the trajectory
  UNIQUE (trial_id, number),
  CHECK ((state = 'ended') = (exit_reason IS NOT NULL))
) STRICT;

CREATE TABLE messages (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  seq INTEGER NOT NULL,
  role TEXT NOT NULL,
  content TEXT NOT NULL,                -- text for reading
  data TEXT NOT NULL,                   -- the whole message, JSON; raw_output is left out, see commands
  created_at TEXT NOT NULL,
  PRIMARY KEY (attempt_id, seq)
) STRICT, WITHOUT ROWID;

-- One row for every HTTP attempt, begun before the request leaves and ended before its answer is used: the money ledger.
CREATE TABLE model_calls (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  step INTEGER NOT NULL,
  try INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('in_flight', 'ok', 'failed', 'aborted')),
  started_at TEXT NOT NULL,
  latency_ms INTEGER,
  status_code INTEGER,
  error_code TEXT,
  error_message TEXT,
  model_asked TEXT NOT NULL,
  model_answered TEXT,
  response_id TEXT,
  fingerprint TEXT,
  finish_reason TEXT,
  usage TEXT,                           -- as the provider sent it, JSON
  input_tokens INTEGER,                 -- neither read from nor written to a cache
  cache_read_tokens INTEGER,
  cache_write_tokens INTEGER,
  output_tokens INTEGER,
  reasoning_tokens INTEGER,             -- part of output_tokens
  price_version TEXT,
  cost_nano INTEGER,
  provider_cost_nano INTEGER,
  estimate_nano INTEGER,                -- reserved before the call
  request_bytes INTEGER,
  notes TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX model_calls_by_attempt ON model_calls (attempt_id);

CREATE TABLE commands (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  step INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  message_seq INTEGER,                  -- the observation that shows it; NULL when none does (the submitting command)
  command TEXT NOT NULL,
  output BLOB NOT NULL,                 -- bytes kept (head and tail)
  exit_code INTEGER NOT NULL,
  timed_out INTEGER NOT NULL CHECK (timed_out IN (0, 1)),
  total_bytes INTEGER NOT NULL,
  omitted_bytes INTEGER NOT NULL,
  replaced_bytes INTEGER NOT NULL,
  oom_killed INTEGER NOT NULL CHECK (oom_killed IN (0, 1)),
  transport TEXT NOT NULL,
  started_at TEXT NOT NULL,
  duration_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX commands_by_attempt ON commands (attempt_id, step, idx);

-- Where the time of an attempt went: queue, pull, start, seal, model, rate_wait, backoff, exec, capture, stop.
CREATE TABLE phases (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  offset_ms INTEGER NOT NULL,           -- from the start of the attempt; the queue lies before it
  duration_ms INTEGER,                  -- NULL while it lasts
  PRIMARY KEY (attempt_id, seq)
) STRICT, WITHOUT ROWID;

-- Verdict history: appended, never overwritten. The verdict of a trial is the newest row for its final attempt's patch.
CREATE TABLE evaluations (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  trial_id INTEGER REFERENCES trials (id),          -- NULL for predictions from outside
  attempt_id INTEGER REFERENCES attempts (id),
  instance_id TEXT NOT NULL,
  model TEXT NOT NULL,
  patch_sha256 TEXT NOT NULL,
  spec_hash TEXT NOT NULL,
  dialect TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('resolved', 'unresolved', 'empty_patch', 'apply_failed', 'timeout', 'invalid', 'infra', 'ungradable')),
  resolved INTEGER CHECK (resolved IN (0, 1)),        -- the dialect's verdict; NULL where it gives none
  resolved_strict INTEGER CHECK (resolved_strict IN (0, 1)),
  report TEXT,                          -- the harness's report.json for the instance
  log BLOB,                             -- test output, gzip
  apply_method TEXT,                    -- rung of the patch ladder
  exit_code INTEGER,
  infra_reason TEXT,
  suspicion TEXT NOT NULL DEFAULT '[]',
  error_message TEXT,
  network TEXT,
  image_digest TEXT,
  source TEXT NOT NULL DEFAULT 'native', -- native, regrade, import
  started_at TEXT NOT NULL,
  duration_ms INTEGER
) STRICT;
CREATE INDEX evaluations_by_trial ON evaluations (trial_id, id);
CREATE INDEX evaluations_by_run ON evaluations (run_id, instance_id);

CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  at TEXT NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX events_by_run ON events (run_id, seq);

CREATE TABLE baselines (
  name TEXT PRIMARY KEY,                -- 'default' unless named
  run_id INTEGER NOT NULL REFERENCES runs (id),
  set_at TEXT NOT NULL
) STRICT;

-- The newest verdict of each trial's final attempt, beside why it ended and what it cost: what reports start from.
CREATE VIEW trial_results AS
SELECT
  t.id AS trial_id, t.run_id, r.name AS run, a.name AS arm, a.model, i.instance_id, i.repo, i.difficulty, t.epoch, t.state,
  i.weight, t.position, f.id AS attempt_id, f.number AS attempts, f.exit_reason, f.exit_class, f.exit_status, t.not_run_reason,
  f.steps, f.elapsed_ms, f.working_ms, f.patch_source, f.patch_state, f.patch_sha256, f.suspicion, f.oom_kills,
  e.id AS evaluation_id, e.outcome, e.resolved, e.resolved_strict, e.suspicion AS grade_suspicion
FROM trials t
JOIN runs r ON r.id = t.run_id
JOIN arms a ON a.id = t.arm_id
JOIN instances i ON i.id = t.instance_pk
LEFT JOIN attempts f ON f.id = t.final_attempt_id
LEFT JOIN evaluations e ON e.id = (
  SELECT max(v.id) FROM evaluations v WHERE v.trial_id = t.id AND v.patch_sha256 = f.patch_sha256
);

-- Money of every attempt, sealed or not; unknown_calls > 0 means that cost_nano is a lower bound.
CREATE VIEW attempt_costs AS
SELECT attempt_id, count(*) AS calls, sum(cost_nano) AS cost_nano, sum(state = 'ok' AND cost_nano IS NULL) AS unknown_calls,
  sum(input_tokens) AS input_tokens, sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
  sum(output_tokens) AS output_tokens, sum(reasoning_tokens) AS reasoning_tokens
FROM model_calls GROUP BY attempt_id;
