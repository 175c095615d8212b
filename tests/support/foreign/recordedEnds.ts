/** A recorded run with an end of each kind, and the figures that another tool's format must keep of it. */
import { summarize } from '../../../src/report/measure/summary.ts';
import { requireRun } from '../../../src/run/resultsRoot.ts';
import type { Store } from '../../../src/store/open.ts';
import { loadRunData } from '../../../src/store/records/runData.ts';
import { openMemory, recordRun } from '../../report/recordedRun.ts';

const IDS = Array.from({ length: 7 }, (_, n) => `a__a-${n}`);
const MESSAGES = [
  { role: 'system', content: 'You fix code.' },
  { role: 'user', content: 'Résumé 文: it is broken.' },
  {
    role: 'assistant',
    content: 'I look.',
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
  },
  { role: 'tool', content: 'a.py', tool_call_id: 'c1' },
];

/** Of each kind of end: resolved, unresolved, at a limit, lost, tried twice, not graded. */
export function recordedEnds(epochs: number, arms: readonly string[]) {
  const store = openMemory();
  recordRun(store, {
    ids: IDS,
    epochs,
    arms,
    happened: (id, arm, epoch) => {
      const k = Number(id.at(-1)) + epoch + arms.indexOf(arm);
      const graded = (resolved: boolean) => ({
        ...{
          patch: `diff ${id}\n`,
          outcome: resolved ? ('resolved' as const) : ('unresolved' as const),
          resolved,
        },
        ...{ cost: 1_000_000 * (k + 1), steps: 1, messages: MESSAGES },
      });
      if (k % 7 === 3) return [{ reason: 'env_died' as const, patch: '', cost: 7_000_000, steps: 1 }];
      if (k % 7 === 4) return [{ ...graded(false), reason: 'limit_steps' as const }];
      if (k % 7 === 5) return [{ reason: 'env_died' as const, patch: '', cost: 9_000_000 }, graded(true)];
      return [graded(k % 2 === 0)];
    },
  });
  return store;
}

/** A sum over epochs in another order differs in its last digit. */
const rounded = (_: string, value: unknown) =>
  typeof value === 'number' ? Number(value.toPrecision(12)) : value;

/** The other tools name arms by themselves: sorted by what they cost. */
export const figures = (store: Store, run: string) =>
  summarize(loadRunData(store, requireRun(store, run).id)!)
    .arms.map((arm) => ({
      ...{ planned: arm.planned, valid: arm.valid, epochs: arm.epochs, instances: arm.instances },
      ...{ resolved: arm.resolved, estimate: arm.estimate, cost: arm.accounting.cost },
      tokens: { ...arm.accounting.tokens, reasoning: 0 },
    }))
    .toSorted((a, b) => a.cost.nano! - b.cost.nano!)
    .map((arm) => JSON.parse(JSON.stringify(arm, rounded)) as object);
