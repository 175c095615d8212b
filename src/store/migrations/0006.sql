-- The limits of the container that a verdict was reached in: a verdict under other limits may be another one.
ALTER TABLE evaluations ADD COLUMN limits TEXT; -- JSON: memory_bytes, pids, cpus (0: none); NULL for older verdicts and where no container ran
