/** The gold patch of a row as the solution of its task. */
import type { Solution } from '../agent/contract.ts';
import type { Instance } from '../dataset/instance.ts';
import { applyPatch, PATCH_PATH } from '../grading/patchAndTests.ts';

/** For each command of the ladder where there is no limit. */
const APPLY_S = 600;

export const goldPatch = ({ patch }: Instance): Solution => ({
  async apply(environment, { timeoutS, signal }) {
    const { cwd } = environment.templateVars();
    await environment.putFile(PATCH_PATH, patch);
    const at = { cwd: typeof cwd === 'string' ? cwd : '/', timeoutS: timeoutS || APPLY_S, signal };
    const { method, output } = await applyPatch(environment, 'v5', at);
    await environment.execute(`rm -f ${PATCH_PATH}`, { cwd: '/', signal });
    if (method !== null) return { says: `the gold patch was applied by "${method}"`, timedOut: false };
    // The grading then says what it says of any such patch.
    return {
      says: `the gold patch does not apply where an agent works: ${output.trim().slice(-400)}`,
      timedOut: false,
      submission: patch,
    };
  },
});
