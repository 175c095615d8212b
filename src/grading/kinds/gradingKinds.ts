/** How an instance is graded: by its kind, and by the rules of SWE-bench where it names none. */
import type { Instance } from '../../dataset/instance.ts';
import { buildsOf, refusalOf } from '../../dataset/kinds/datasetKinds.ts';
import { rememberRecipe } from '../../environment/places/images/build/buildRecipes.ts';
import type { SpecOptions } from '../specs/spec.ts';
import type { GradingKind, PlannedGrading } from './gradingKind.ts';
import { harborGrading } from './harbor/harborGrading.ts';
import { live } from './live/gradeLive.ts';
import { multiSwe } from './multiSwe/gradeMultiSwe.ts';
import { pro } from './pro/gradePro.ts';
import { r2e } from './r2e/gradeR2e.ts';
import { rebenchV2 } from './rebench/gradeRebenchV2.ts';
import { planSweBench } from './sweBench.ts';

const GRADING_KINDS: readonly GradingKind[] = [harborGrading, pro, live, multiSwe, rebenchV2, r2e];

export function planGrading(instance: Instance, options: SpecOptions = {}): PlannedGrading {
  const { kind, instance_id } = instance;
  if (kind === undefined) return planSweBench(instance, options);
  const refused = refusalOf(instance);
  if (refused !== undefined) return { ok: false, reason: `${instance_id} cannot be graded: ${refused}` };
  // An image of the tests is asked for by nobody else.
  for (const { image, ...recipe } of buildsOf(instance)) rememberRecipe(image, recipe);
  const found = GRADING_KINDS.find(({ name }) => name === kind);
  if (found) return found.plan(instance, options);
  return {
    ok: false,
    reason: `${instance_id} cannot be graded: no rules are known for tasks of kind "${kind}"`,
  };
}
