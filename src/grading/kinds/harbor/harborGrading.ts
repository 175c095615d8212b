/**
 * Harbor tasks: their own tests judge the end state of the agent's container, and write a reward. The tests go into a container that is made
 * after the agent's is gone, or beside it between two steps: from the image that its end state was kept as, or from that of the task for a
 * patch from a file.
 */
import { sha256 } from '../../../base/sha256.ts';
import type { Instance } from '../../../dataset/instance.ts';
import { imageOf } from '../../../dataset/instance.ts';
import { type HarborTask, harborTaskOf } from '../../../dataset/kinds/harbor/harborTask.ts';
import { HARBOR } from '../../../dataset/kinds/harbor/readTask.ts';
import type { SpecOptions } from '../../specs/spec.ts';
import type { GradingKind, PlannedGrading } from '../gradingKind.ts';
import { gatesOf, gradeSteps } from './gradeSteps.ts';
import { verification } from './verification.ts';

function planHarbor(instance: Instance, { dialect = 'v5' }: SpecOptions): PlannedGrading {
  let task: HarborTask;
  try {
    task = harborTaskOf(instance);
  } catch {
    return { ok: false, reason: `${instance.instance_id} cannot be graded: its task could not be read` };
  }
  const { folder: _, ...decides } = task;
  const image = imageOf(instance);
  const specHash = sha256(JSON.stringify([image, decides]));
  const grading = { instance, task, image, specHash, dialect };
  if (task.steps)
    return {
      ok: true,
      plan: {
        specHash,
        gates: gatesOf({ ...grading, steps: task.steps }),
        grade: (request) => gradeSteps({ ...grading, steps: task.steps! }, request),
      },
    };
  const wanted = { ...grading, testFolders: ['tests'] };
  return {
    ok: true,
    plan: {
      specHash,
      grade: (request) => verification({ ...wanted, image: request.work ?? image }, request),
    },
  };
}

export const harborGrading: GradingKind = { name: HARBOR, plan: planHarbor };
