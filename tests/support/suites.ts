// All suites, loaded: what reads instances loads the suites of them, and these tests make instances themselves.
import { loadSuites } from '../../src/suites/suites.ts';

await loadSuites([
  'swe-bench',
  'harbor',
  'multi-swe-bench',
  'swe-bench-pro',
  'swe-bench-live',
  'swe-rebench-v2',
  'swe-smith',
  'r2e-gym',
]);

export { normaliseRow } from '../../src/suites/loadDataset.ts';
export { needsOf, planGrading } from '../../src/suites/suites.ts';
