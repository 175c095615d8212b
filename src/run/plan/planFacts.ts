/** Facts that a plan is checked against: its configuration, the caller's variables, and the engine. */

import { environmentKindOf } from '../../environment/environments.ts';
import { type EngineInfo, engineInfo } from '../../environment/places/engineInfo.ts';
import type { Caller, Variables } from '../caller.ts';
import type { RunRequest } from './planRecord.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

/** A plan, or what the record of a run holds of one. */
export type CheckedPlan = Pick<ResolvedConfig, 'arms' | 'run' | 'grading'> &
  Partial<Pick<ResolvedConfig, 'keys' | 'images' | 'suite' | 'unwritten' | 'replacedBy'>> & {
    /** The tasks, where they are known. */
    readonly selected?: RunRequest['selected'];
  };

export interface PlanFacts extends CheckedPlan {
  /** The variables with the keys that stand in the configuration. */
  readonly env: Variables;
  readonly cwd: string;
  /** Endpoints of the makers themselves are asked too. */
  readonly online?: boolean;
  /** The name of the engine in findings. */
  readonly engineName: string;
  /** undefined where no engine is needed, or it was not asked. */
  readonly engine: EngineInfo | undefined;
}

/** The facts before the engine was asked. */
export const planFacts = <P extends CheckedPlan>(
  plan: P,
  { env, cwd }: Pick<Caller, 'env' | 'cwd'>,
): P & PlanFacts => ({
  ...plan,
  env: { ...env, ...plan.keys },
  cwd,
  engineName: 'engine',
  engine: undefined,
});

export async function withEngineFacts<F extends PlanFacts>(facts: F, again = false): Promise<F> {
  if (!needsEngine(facts)) return facts;
  return { ...facts, engine: await answerOfEngine({ again }) };
}

/** A choice that leads to no engine, such as a context that is gone, is an engine that does not answer. */
export const answerOfEngine = (how: Parameters<typeof engineInfo>[1]): Promise<EngineInfo> =>
  engineInfo(undefined, how).catch((error: Error) => ({ ok: false, message: error.message }));

/** The parts of a plan that say where containers run. */
export interface Placed {
  readonly arms: readonly Pick<ResolvedConfig['arms'][number], 'environment'>[];
  readonly grading: { readonly enabled: boolean };
}

export function needsEngine({ arms, grading }: Placed): boolean {
  const needs = arms.map(({ environment }) => environmentKindOf(environment).engines);
  return needs.includes('all') || (grading.enabled && needs.includes('gradings'));
}
