/** How tasks of one kind are graded. The reader of the same name is in src/dataset/kinds. */
import type { Instance } from '../../dataset/instance.ts';
import type { SpecOptions } from '../specs/spec.ts';
import type { EvaluationResult, GradeRequest } from './gradingFrame.ts';

export interface KindGradeRequest extends GradeRequest {
  /** Image of the container that the agent left, where the kind keeps it; absent for a prediction from a file. */
  readonly work?: string | undefined;
}

export interface GradingPlan {
  /** Of everything that decides the verdict: another hash asks for another grading. */
  readonly specHash: string;
  grade(request: KindGradeRequest): Promise<EvaluationResult>;
}

export type PlannedGrading =
  | { readonly ok: true; readonly plan: GradingPlan }
  /** The row cannot be graded here; the reason is a sentence with its id. */
  | { readonly ok: false; readonly reason: string };

export interface GradingKind {
  /** As instances say it in `kind`. */
  readonly name: string;
  plan(instance: Instance, options: SpecOptions): PlannedGrading;
}
