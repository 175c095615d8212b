/** SWE-bench, and whatever has rows of its form: patch, eval script, log parser. */
import { resolveGradeSpec } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { evaluatePrediction } from './evaluatePrediction.ts';

export const sweBench: Suite = {
  grading(instance, options) {
    const resolved = resolveGradeSpec(instance, options);
    if (!resolved.ok) return resolved;
    const { spec } = resolved;
    return {
      ok: true,
      plan: { specHash: spec.specHash, grade: (request) => evaluatePrediction({ ...request, spec }) },
    };
  },
};
