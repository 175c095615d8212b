/** How tasks of one kind are graded. The reader of the same name is in src/dataset/kinds. */
import type { Instance } from '../../dataset/instance.ts';
import type { SpecOptions } from '../specs/spec.ts';
import type { EvaluationResult, GradeRequest } from './gradingFrame.ts';

export interface KindGradeRequest extends GradeRequest {
  /** What was kept of the container that the agent left, where the kind keeps it (keptWork.ts); absent for a prediction from a file. */
  readonly work?: string | undefined;
}

/** A step that was verified before the next one begins. */
export interface GateVerdict {
  readonly goesOn: boolean;
  /** A sentence about it. */
  readonly says: string;
  /** What the grading of the whole needs of it: it goes with the work that is kept. */
  readonly verdict: unknown;
  /** The place where it ran was away or broken, which says nothing about the work. */
  readonly lost?: string;
}

/** `image`: the work as the step left it. */
export type Gate = (request: GradeRequest & { readonly image: string }) => Promise<GateVerdict>;

export interface GradingPlan {
  /** Of everything that decides the verdict: another hash asks for another grading. */
  readonly specHash: string;
  grade(request: KindGradeRequest): Promise<EvaluationResult>;
  /** Steps after which the attempt only goes on when their verifier says so, by their names. */
  readonly gates?: ReadonlyMap<string, Gate>;
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
