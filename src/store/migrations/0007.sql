-- What the calls and phases of an ended attempt come to. A report of 50,000 trials would add up millions of rows each time. An attempt without
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

INSERT INTO attempt_ledger
SELECT c.attempt_id, coalesce(c.model_answered, c.model_asked), count(*), sum(c.state <> 'ok'),
  sum(c.state <> 'in_flight' AND c.cost_nano IS NULL), sum(CAST(c.cost_nano AS REAL)), sum(CAST(c.input_tokens AS REAL)),
  sum(CAST(c.cache_read_tokens AS REAL)), sum(CAST(c.cache_write_tokens AS REAL)), sum(CAST(c.output_tokens AS REAL)),
  sum(CAST(c.reasoning_tokens AS REAL)),
  coalesce(sum(CAST(iif(c.cache_write_tokens > 0 AND json_valid(c.usage),
    c.usage ->> '$.cache_creation.ephemeral_1h_input_tokens', 0) AS REAL)), 0.0),
  json_group_array(DISTINCT c.model_asked) FILTER (WHERE c.state = 'ok'),
  json_group_array(DISTINCT c.price_version) FILTER (WHERE c.price_version IS NOT NULL)
FROM model_calls c JOIN attempts a ON a.id = c.attempt_id WHERE a.state = 'ended' GROUP BY 1, 2;
INSERT INTO attempt_phases
SELECT p.attempt_id, p.name, sum(CAST(p.duration_ms AS REAL)) FROM phases p JOIN attempts a ON a.id = p.attempt_id
WHERE a.state = 'ended' AND p.offset_ms >= 0 GROUP BY 1, 2;
INSERT INTO attempt_sums SELECT id FROM attempts WHERE state = 'ended';

-- Listings and reports read these columns of every instance, and the verdict of every trial: without the large columns beside them.
CREATE INDEX instances_listed ON instances (run_id, position, instance_id, repo, difficulty, image, row_hash, weight);
CREATE INDEX evaluations_by_patch ON evaluations (trial_id, patch_sha256);
CREATE INDEX evaluations_of_gold ON evaluations (instance_id) WHERE model = 'gold';
