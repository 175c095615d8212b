-- An agent that is a program of others makes calls beside its own turns: what a call was for.
ALTER TABLE model_calls ADD COLUMN label TEXT; -- subagent:ID, title, count_tokens; NULL for the agent's own turns
-- A reply that breaks the rules of its dialect is kept as it came.
ALTER TABLE model_calls ADD COLUMN unreadable TEXT; -- redacted, its first megabyte; NULL for every other call
