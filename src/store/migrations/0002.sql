-- A call whose answer was lost, or whose usage nobody said, has no known cost either: the sum of an attempt is a lower bound then too.
DROP VIEW attempt_costs;
CREATE VIEW attempt_costs AS
SELECT attempt_id, count(*) AS calls, sum(cost_nano) AS cost_nano,
  sum(state <> 'in_flight' AND cost_nano IS NULL) AS unknown_calls,
  sum(input_tokens) AS input_tokens, sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
  sum(output_tokens) AS output_tokens, sum(reasoning_tokens) AS reasoning_tokens
FROM model_calls GROUP BY attempt_id;

-- What a run has spent is asked for often, also while it works: the answer is in the index alone.
DROP INDEX model_calls_by_attempt;
CREATE INDEX model_calls_by_attempt ON model_calls (attempt_id, state, cost_nano, estimate_nano);
