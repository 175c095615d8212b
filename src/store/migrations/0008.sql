-- Verdicts that are numbers: a suite may give a reward between 0 and 1 beside resolved and unresolved.
ALTER TABLE evaluations ADD COLUMN reward REAL;   -- NULL where the rules of the suite know none
ALTER TABLE evaluations ADD COLUMN rewards TEXT;  -- JSON: every reward by its name; NULL as above

-- For tasks whose end state is graded, and not only the patch.
ALTER TABLE attempts ADD COLUMN work_image TEXT;  -- image of the container as the agent left it; it is removed once there is a verdict
