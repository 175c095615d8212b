#!/bin/sh
# One night: an agent over the same sample, graded and judged. The exit code is swebatch's own: see docs/nightly.md.
# SWEBATCH_MODEL is the model, SWEBATCH_HOME the folder that holds results/ and, in node_modules, swebatch.
set -eu
: "${SWEBATCH_MODEL:?set it to a model, for example gpt-5.4}"
cd "${SWEBATCH_HOME:-/opt/swebatch}"
exec npx swebatch run -c nightly --subset verified --sample 100 --stratify repo,difficulty --seed 7 -m "$SWEBATCH_MODEL" \
  -w 8 -o results --run-id "nightly-$(date +%F)" --evaluate --baseline last --max-infra 5% --max-cost 60
