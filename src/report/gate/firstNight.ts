/** The verdict about a night that has no baseline: the limits that look at its own numbers alone. */
import { rate } from '../render/format.ts';
import { proportion } from '../statistics/proportions.ts';
import type { GateResult } from './gate.ts';
import { type Candidate, type GatePolicy, type GateRule, limitsOf } from './rules.ts';

/** `required`: a night without a baseline is to fail. */
export function firstNight(candidate: Candidate, policy: GatePolicy, required: boolean): GateResult {
  const { valid, resolved } = candidate;
  const missing: GateRule = {
    rule: 'baseline',
    passed: false,
    text: 'no complete and graded run has this configuration and dataset',
    ids: [],
  };
  const limits = limitsOf({ candidate, policy, remeasured: new Map() });
  const rules = required ? [missing, ...limits] : limits;
  const passed = rules.every((r) => r.passed);
  return {
    ...{ verdict: 'inconclusive', passed, exitCode: passed ? 0 : 1, rules },
    line: `no baseline yet: resolved ${rate(proportion(resolved, valid))} of valid`,
    ...{ broken: [], flaky: [], fixed: [], unconfirmed: [], rocks: [], remeasured: false },
    ...{ confirmation: null, matched: 0, notComparable: [], drop: null, confirmedDrop: null },
    ...{ chance: null, p: null, test: null, detectable: null, warnings: [] },
  };
}
