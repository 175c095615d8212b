-- An agent that is a program of others makes calls beside its own turns: what a call was for.
ALTER TABLE model_calls ADD COLUMN label TEXT; -- subagent:ID, title, count_tokens; NULL for the agent's own turns
