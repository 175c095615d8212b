-- The calls of an agent that is a program of others: what it asked and what it got, for the trajectory of its sub-agents and for a replay.
ALTER TABLE model_calls ADD COLUMN call INTEGER; -- which call of the program the row is a try of; NULL for the built-in agent

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
