-- The record of all runs in a results root; SCHEMA_VERSION in open.ts is its version. Plain SQL a person can query; times are ISO 8601 UTC texts unless the name ends in _ms.
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
-- Listings read these columns of every instance without the large ones beside them.
CREATE INDEX instances_listed ON instances (run_id, position, instance_id, repo, difficulty, image, row_hash, weight);

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
  patch_source TEXT CHECK (patch_source IS NULL OR patch_source IN ('submitted', 'captured_at_exit', 'none')),
  patch_state TEXT CHECK (patch_state IS NULL OR patch_state IN ('ok', 'empty', 'invalid', 'oversized')),
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
  work_image TEXT,                      -- the container as the agent left it, where the end state is graded; removed once there is a verdict
  -- What is large comes last: a listing reads the columns before it, and not the pages that it fills.
  error_evidence TEXT,                  -- JSON for debugging, redacted
  submission BLOB,                      -- submitted bytes, untouched; NULL when nothing was submitted
  captured_patch BLOB,                  -- what the harness found in the tree
  model_patch TEXT,                     -- what the prediction carries, by run.patch
  config TEXT,                          -- JSON: the arm's resolved config with what this attempt added, for the trajectory
  UNIQUE (trial_id, number),
  CHECK ((state = 'ended') = (exit_reason IS NOT NULL))
) STRICT;

CREATE TABLE messages (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  seq INTEGER NOT NULL,
  role TEXT NOT NULL,
  content ANY NOT NULL,                 -- text for reading, or its parts; compressed where content_bytes is set: the view message_texts shows it
  data ANY NOT NULL,                    -- the whole message, JSON; raw_output is left out, see commands; content 0 is the column content
  created_at TEXT NOT NULL,
  content_bytes INTEGER,                -- of the text, where the column is a zlib stream
  data_bytes INTEGER,
  output_id INTEGER,                    -- commands.id: content is a JSON array, each part a text or [from, bytes] of what the command printed
  PRIMARY KEY (attempt_id, seq)
) STRICT;                               -- with rowids: without, what a row has above 1 KB lies on pages of its own

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
  notes TEXT NOT NULL DEFAULT '[]',
  label TEXT,                           -- what a call beside the agent's own turns was for: subagent:ID, title, count_tokens; grading: one of the tests
  unreadable TEXT,                      -- a reply that breaks the rules of its dialect, redacted, its first megabyte; NULL for every other call
  call INTEGER                          -- which call of an installed program the row is a try of; NULL for the built-in agent
) STRICT;
-- A run's spending is asked for often, also while it works: the answer is in the index alone.
CREATE INDEX model_calls_by_attempt ON model_calls (attempt_id, state, cost_nano, estimate_nano);

CREATE TABLE commands (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  step INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  message_seq INTEGER,                  -- the observation that shows it; NULL when none does (the submitting command)
  command TEXT NOT NULL,
  output BLOB NOT NULL,                 -- bytes kept (head and tail); compressed where output_bytes is set: the view command_texts shows them
  exit_code INTEGER,                    -- NULL: a command of an installed program, which did not tell it
  timed_out INTEGER NOT NULL CHECK (timed_out IN (0, 1)),
  total_bytes INTEGER NOT NULL,
  omitted_bytes INTEGER NOT NULL,
  replaced_bytes INTEGER NOT NULL,
  oom_killed INTEGER NOT NULL CHECK (oom_killed IN (0, 1)),
  transport TEXT NOT NULL,
  started_at TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  output_bytes INTEGER                  -- of the output, where the column is a zlib stream
) STRICT;
CREATE INDEX commands_by_attempt ON commands (attempt_id, step, idx);

-- Long texts as texts. The sqlite3 program has sqlar_uncompress; other programs define it (CONTRIBUTING.md).
CREATE VIEW message_texts AS
  SELECT attempt_id, seq, role, content,
    iif(json_valid(data) AND data -> '$.content' IS '0', json_set(data, '$.content', content), data) AS data, created_at
  FROM (
    SELECT attempt_id, seq, role, created_at, data,
      iif(output_id IS NULL, content, (
        SELECT group_concat(iif(type = 'text', value, CAST(substr(output, 1 + (value ->> 0), value ->> 1) AS TEXT)), '')
        FROM (
          SELECT CAST(iif(output_bytes IS NULL, output, sqlar_uncompress(output, output_bytes)) AS BLOB) AS output
          FROM commands WHERE id = output_id
        ), json_each(content)
      )) AS content
    FROM (
      SELECT attempt_id, seq, role, created_at, output_id,
        iif(content_bytes IS NULL, content, CAST(sqlar_uncompress(content, content_bytes) AS TEXT)) AS content,
        iif(data_bytes IS NULL, data, CAST(sqlar_uncompress(data, data_bytes) AS TEXT)) AS data
      FROM messages
    )
  );

CREATE VIEW command_texts AS
  SELECT id, attempt_id, step, idx, message_seq, command,
    CAST(iif(output_bytes IS NULL, output, sqlar_uncompress(output, output_bytes)) AS TEXT) AS output,
    exit_code, timed_out, total_bytes, omitted_bytes, replaced_bytes, oom_killed, transport, started_at, duration_ms
  FROM commands;

-- Where the time of an attempt went: queue, pull, start, seal, model, rate_wait, backoff, exec, capture, stop.
CREATE TABLE phases (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  offset_ms INTEGER NOT NULL,           -- from the start of the attempt; the queue lies before it
  duration_ms INTEGER,                  -- NULL while it lasts
  PRIMARY KEY (attempt_id, seq)
) STRICT, WITHOUT ROWID;

-- The connections that containers with a list of hosts made, or wanted to, as the proxy saw them: one row for each tunnel and each plain request.
CREATE TABLE connections (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  phase TEXT NOT NULL CHECK (phase IN ('setup', 'agent', 'verifier')),
  via TEXT NOT NULL CHECK (via IN ('connect', 'http')),
  host TEXT NOT NULL,                   -- '' where none could be read; '*' in a row of those that came when there were very many
  port INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('allowed', 'refused', 'failed')),
  reason TEXT,                          -- why it was refused, failed or was closed from here
  bytes_in INTEGER NOT NULL,            -- from the host
  bytes_out INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  count INTEGER NOT NULL DEFAULT 1      -- how many the row stands for
) STRICT;
CREATE INDEX connections_by_attempt ON connections (attempt_id, id);

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
  harness TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('resolved', 'unresolved', 'empty_patch', 'apply_failed', 'timeout', 'invalid', 'infra', 'ungradable')),
  resolved INTEGER CHECK (resolved IN (0, 1)),        -- the harness's verdict; NULL where it gives none
  resolved_strict INTEGER CHECK (resolved_strict IN (0, 1)),
  apply_method TEXT,                    -- rung of the patch ladder
  exit_code INTEGER,
  infra_reason TEXT,
  suspicion TEXT NOT NULL DEFAULT '[]',
  error_message TEXT,
  network TEXT,
  image_digest TEXT,
  source TEXT NOT NULL DEFAULT 'native', -- native, regrade, import
  started_at TEXT NOT NULL,
  duration_ms INTEGER,
  limits TEXT,                          -- limits of the container, JSON: memory_bytes, pids, cpus (0: none); NULL where no container ran
  reward REAL,                          -- between 0 and 1; NULL where the rules of the suite know none
  rewards TEXT,                         -- JSON: every reward by its name; NULL as above
  -- What is large comes last, as in attempts.
  report TEXT,                          -- the harness's report.json for the instance
  log BLOB                              -- test output, gzip
) STRICT;
CREATE INDEX evaluations_by_trial ON evaluations (trial_id, id);
CREATE INDEX evaluations_by_run ON evaluations (run_id, instance_id);
CREATE INDEX evaluations_by_patch ON evaluations (trial_id, patch_sha256);
CREATE INDEX evaluations_of_gold ON evaluations (instance_id) WHERE model = 'gold';

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

-- The gate's verdicts about arms of runs. The newest verdict of an arm counts: a night whose gate failed is no baseline by itself.
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

-- The calls of an agent that is a program of others: what it asked and what it got, for the trajectory of its sub-agents and for a replay.
CREATE TABLE program_calls (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  call INTEGER NOT NULL,                -- 0, 1, ... in the order in which calls began
  step INTEGER NOT NULL,
  label TEXT,                           -- as in model_calls
  thread TEXT NOT NULL,                 -- the conversation: main, the id of a sub-agent, title
  dialect TEXT NOT NULL,
  operation TEXT NOT NULL CHECK (operation IN ('generate', 'stream', 'count_tokens')),
  model TEXT NOT NULL,
  first_message INTEGER NOT NULL,       -- messages.seq of the first message that it added
  reply_message INTEGER,                -- messages.seq of its answer; NULL where none came
  answer TEXT NOT NULL CHECK (answer IN ('whole', 'cut', 'refused', 'error')),
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,                -- JSON
  request BLOB NOT NULL,                -- gzip of JSON {base, shared, items, rest}: items after the first `shared` of call `base`
  response BLOB NOT NULL,               -- gzip of what the program got
  failure TEXT,                         -- JSON; NULL where the model answered
  PRIMARY KEY (attempt_id, call)
) STRICT;

-- Requests of tests to a model (model_calls has the money, as grading), with answers: the same request of the same attempt is answered from here.
CREATE TABLE judge_calls (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  at TEXT NOT NULL,
  key TEXT NOT NULL,                    -- sha256 over dialect, operation, model and the request as it went out
  dialect TEXT NOT NULL,
  operation TEXT NOT NULL,
  model TEXT NOT NULL,
  request BLOB NOT NULL,                -- gzip
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,                -- JSON
  response BLOB NOT NULL,               -- gzip of what came
  reply TEXT NOT NULL                   -- JSON: what it comes to
) STRICT;
CREATE INDEX judge_calls_by_attempt ON judge_calls (attempt_id, id);

-- The sums of an ended attempt's calls and phases. A report of 50,000 trials would add up millions of rows each time. An attempt without
-- a row in attempt_sums is added up from its calls and phases; so is one whose calls changed after its end.
CREATE TABLE attempt_sums (
  attempt_id INTEGER PRIMARY KEY REFERENCES attempts (id)
) STRICT;

CREATE TABLE attempt_ledger (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  model TEXT NOT NULL,                  -- that answered, else that was asked
  calls INTEGER NOT NULL,
  failed_calls INTEGER NOT NULL,
  unknown_calls INTEGER NOT NULL,
  cost_nano REAL,                       -- NULL: nothing is known
  input_tokens REAL,
  cache_read_tokens REAL,
  cache_write_tokens REAL,
  output_tokens REAL,
  reasoning_tokens REAL,
  cache_write_1h_tokens REAL NOT NULL,
  asked TEXT NOT NULL,                  -- JSON array: models asked for by the answered calls
  price_versions TEXT NOT NULL,         -- JSON array
  PRIMARY KEY (attempt_id, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt_phases (
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  name TEXT NOT NULL,
  total_ms REAL,                        -- without the queue, which lies before the attempt
  PRIMARY KEY (attempt_id, name)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sums_call_begun AFTER INSERT ON model_calls BEGIN DELETE FROM attempt_sums WHERE attempt_id = NEW.attempt_id; END;
CREATE TRIGGER sums_call_changed AFTER UPDATE ON model_calls BEGIN DELETE FROM attempt_sums WHERE attempt_id = NEW.attempt_id; END;
CREATE TRIGGER sums_call_removed AFTER DELETE ON model_calls BEGIN DELETE FROM attempt_sums WHERE attempt_id = OLD.attempt_id; END;
CREATE TRIGGER sums_phase_begun AFTER INSERT ON phases BEGIN DELETE FROM attempt_sums WHERE attempt_id = NEW.attempt_id; END;
CREATE TRIGGER sums_phase_changed AFTER UPDATE ON phases BEGIN DELETE FROM attempt_sums WHERE attempt_id = NEW.attempt_id; END;
CREATE TRIGGER sums_phase_removed AFTER DELETE ON phases BEGIN DELETE FROM attempt_sums WHERE attempt_id = OLD.attempt_id; END;

-- Requests of people to a run while its process works on it, from another terminal or from the viewer, and the process's answers.
CREATE TABLE controls (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  asked_at TEXT NOT NULL,
  asked_by TEXT NOT NULL,               -- user@host and from where
  command TEXT NOT NULL,                -- pause, resume, workers, budget, cancel; another word is refused
  argument TEXT,
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'taken', 'done', 'refused', 'withdrawn')),
  answered_at TEXT,
  answer TEXT                           -- a sentence: what was done, or why not
) STRICT;
CREATE INDEX controls_open ON controls (run_id, id) WHERE state IN ('open', 'taken');

-- Requests and tokens a minute that all processes of this results root share on one key and model. A row is a quarter of a second: what a killed
-- process had reserved is out of the last minute after a minute, like everything else.
CREATE TABLE rate_uses (
  account TEXT NOT NULL,                -- sha256 over address, key and model
  slot INTEGER NOT NULL,                -- milliseconds since 1970 / 250
  requests INTEGER NOT NULL,
  tokens INTEGER NOT NULL,              -- reserved, and corrected by what the call took
  PRIMARY KEY (account, slot)
) STRICT, WITHOUT ROWID;

-- The rate limits in the headers of answers.
CREATE TABLE rate_limits (
  account TEXT PRIMARY KEY,
  rpm INTEGER,
  tpm INTEGER,
  told_at_ms INTEGER NOT NULL,
  paused_until_ms INTEGER               -- a pause that a provider asked one process for, kept by all; milliseconds since 1970; NULL: none was asked for
) STRICT, WITHOUT ROWID;

-- The state that a run's process would know alone: its slots and limiters, every two seconds while they change.
CREATE TABLE live_states (
  run_id INTEGER PRIMARY KEY REFERENCES runs (id),
  at_ms INTEGER NOT NULL,               -- milliseconds since 1970
  data TEXT NOT NULL                    -- JSON: {slots, models}
) STRICT;

-- Of runs that earlier versions spread over several engines: which attempt ran on which of them. Nothing writes it any more.
CREATE TABLE leases (
  id INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempts (id),
  engine TEXT NOT NULL,                 -- a Docker context or an address
  began_at TEXT NOT NULL,
  ended_at TEXT,
  how TEXT                              -- closed, lost, moved (before anything had run there), process_lost
) STRICT;
CREATE INDEX leases_of_attempt ON leases (attempt_id);

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

-- Money of every attempt, sealed or not. A call whose answer was lost, or whose usage nobody said, has no known cost: unknown_calls > 0 means that
-- cost_nano is a lower bound.
CREATE VIEW attempt_costs AS
SELECT attempt_id, count(*) AS calls, sum(cost_nano) AS cost_nano,
  sum(state <> 'in_flight' AND cost_nano IS NULL) AS unknown_calls,
  sum(input_tokens) AS input_tokens, sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
  sum(output_tokens) AS output_tokens, sum(reasoning_tokens) AS reasoning_tokens
FROM model_calls GROUP BY attempt_id;
