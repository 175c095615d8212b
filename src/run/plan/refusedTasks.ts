/** Tasks that cannot run here, or get no verdict: all are named before anything starts, or left out where the user says so. */

import { inert } from '../../base/text/inert.ts';
import { headOf } from '../../dataset/dataset.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import { needsOf } from '../../suites/suites.ts';
import type { Caller, Tell } from '../caller.ts';
import { UserError } from '../userError.ts';
import { refusalsOf, type TaskFacts, type TaskRefusal, type TaskRow } from './checks.ts';
import { answerOfEngine, needsEngine, type Placed } from './planFacts.ts';
import type { ResolvedConfig } from './resolveConfig.ts';
import { type EngineFacts, solves } from './taskChecks.ts';

interface Unsupported {
  readonly instance_id: string;
  readonly reason: string;
}

/** A slow engine has its time. A task that is not refused here fails when it starts. */
const ANSWER_MS = 15_000;

/**
 * The engine, where a task asks for something of it. An engine that does not answer refuses nothing here: that is told later, and a plan can be
 * made without.
 */
async function engineFacts(rows: readonly TaskRow[], placed: Placed): Promise<readonly EngineFacts[]> {
  const asks = (row: TaskRow): boolean => {
    if ('file' in row || row.refused !== undefined) return false;
    const { processors = 0, memoryMb = 0, gpus = 0, container } = needsOf(row.instance);
    return Math.max(processors, memoryMb, gpus) > 0 || container?.services !== undefined;
  };
  if (!needsEngine(placed) || !rows.some(asks)) return [];
  const engine = await answerOfEngine({ answerMs: ANSWER_MS });
  return engine.ok ? [engine] : [];
}

/** Facts where tasks are graded, and no agent works. */
export const gradedTaskFacts = async (
  rows: readonly TaskRow[],
  arms: Placed['arms'],
): Promise<TaskFacts> => ({
  run: [{ graded: true }],
  engine: await engineFacts(rows, { arms, grading: { enabled: true } }),
  machine: [],
  arm: [],
  grader: [],
});

/** Facts of a run. */
export async function taskFacts(
  rows: readonly TaskRow[],
  { arms, suite, grading }: Pick<ResolvedConfig, 'arms' | 'suite' | 'grading'>,
  { env, cwd }: Pick<Caller, 'env' | 'cwd'>,
): Promise<TaskFacts> {
  const { enabled: graded, harness, parsers } = grading;
  // A parser that cannot be loaded is told with the rest of the configuration.
  const registry = graded ? await loadParsers(parsers, cwd).catch(() => null) : null;
  const applied = await Promise.all(arms.map(solves));
  return {
    run: [{ graded }],
    engine: await engineFacts(rows, { arms, grading }),
    machine: [{ suite, env, solves: applied.includes(true) }],
    arm: arms,
    grader: registry === null ? [] : [{ harness, parsers: registry }],
  };
}

async function refusedTasks<R extends TaskRow>(
  rows: readonly R[],
  facts: TaskFacts,
): Promise<ReadonlyMap<R, readonly TaskRefusal[]>> {
  const refused = new Map<R, readonly TaskRefusal[]>();
  for (const row of rows) {
    const refusals = await refusalsOf(row, facts);
    if (refusals.length > 0) refused.set(row, refusals);
  }
  return refused;
}

export const reasonsOf = (refusals: readonly TaskRefusal[] = []): string =>
  refusals.map(({ why }) => why).join('; ');

/** More would push what matters off the screen. */
const SHOWN = 20;

/** Throws a UserError with each reason, unless `skip`. */
export async function withoutRefused<R extends TaskRow>(
  rows: readonly R[],
  facts: TaskFacts,
  { skip, tell }: { readonly skip: boolean; readonly tell: Tell },
): Promise<{ supported: readonly R[]; unsupported: readonly Unsupported[] }> {
  const refused = await refusedTasks(rows, facts);
  const unsupported: Unsupported[] = [];
  let supported = rows;
  for (const goal of ['run', 'verdict'] as const) {
    const left = new Set(supported.filter((row) => refused.get(row)?.some((one) => one.of === goal)));
    if (left.size === 0) continue;
    const named = [...left].map((row) => ({
      instance_id: headOf(row).instance_id,
      reason: reasonsOf(refused.get(row)),
    }));
    const lines = named.slice(0, SHOWN).map((one) => `  ${one.instance_id}: ${inert(one.reason)}`);
    const more = named.length > SHOWN ? [`  and ${named.length - SHOWN} more`] : [];
    const what = goal === 'run' ? 'run here' : 'be graded';
    const text = [`${left.size} of ${supported.length} tasks cannot ${what}:`, ...lines, ...more].join('\n');
    if (!skip)
      throw new UserError(text, { next: { do: goal === 'run' ? 'skip_unsupported' : 'skip_grading' } });
    supported = supported.filter((row) => !left.has(row));
    if (supported.length === 0) throw new UserError(text);
    tell({ level: 'warning', text: `left out: ${text}` });
    unsupported.push(...named);
  }
  return { supported, unsupported };
}
