-- A pause that a provider asked one process for, kept by all that use the same key and model.
ALTER TABLE rate_limits ADD COLUMN paused_until_ms INTEGER;   -- milliseconds since 1970; NULL means that none was asked for
