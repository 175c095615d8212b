/** The rules of SWE-bench: patch, eval script, log parser. */
import type { Instance } from '../../dataset/instance.ts';
import { evaluatePrediction } from '../evaluatePrediction.ts';
import { resolveGradeSpec, type SpecOptions } from '../specs/spec.ts';
import type { PlannedGrading } from './gradingKind.ts';

export function planSweBench(instance: Instance, options: SpecOptions): PlannedGrading {
  const resolved = resolveGradeSpec(instance, options);
  if (!resolved.ok) return resolved;
  const { spec } = resolved;
  return {
    ok: true,
    plan: { specHash: spec.specHash, grade: (request) => evaluatePrediction({ ...request, spec }) },
  };
}
