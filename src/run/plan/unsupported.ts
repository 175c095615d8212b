/** Tasks that cannot run here: all are named before anything starts, or left out where the user says so. */
import { inert } from '../../base/text/inert.ts';
import type { LoadedRow } from '../../dataset/dataset.ts';
import { headOf } from '../../dataset/instance.ts';
import type { Tell } from '../caller.ts';
import { UserError } from '../userError.ts';

export interface UnsupportedTask {
  readonly instance_id: string;
  readonly reason: string;
}

type Row = Pick<LoadedRow, 'instance' | 'head' | 'refused'>;

/** More would push what matters off the screen. */
const SHOWN = 20;

const linesOf = (tasks: readonly UnsupportedTask[]): string => {
  const lines = tasks.slice(0, SHOWN).map(({ instance_id, reason }) => `  ${instance_id}: ${inert(reason)}`);
  const left = tasks.length - lines.length;
  return [...lines, ...(left > 0 ? [`  and ${left} more`] : [])].join('\n');
};

/** Throws a UserError with each reason, unless `skip`. */
export function withoutUnsupported<R extends Row>(
  selected: readonly R[],
  skip: boolean,
  tell: Tell,
): { supported: readonly R[]; unsupported: readonly UnsupportedTask[] } {
  const unsupported = selected.flatMap((row) =>
    row.refused === undefined ? [] : [{ instance_id: headOf(row).instance_id, reason: row.refused }],
  );
  if (unsupported.length === 0) return { supported: selected, unsupported };
  const text = `${unsupported.length} of ${selected.length} tasks cannot run here:\n${linesOf(unsupported)}`;
  const supported = selected.filter(({ refused }) => refused === undefined);
  if (!skip) throw new UserError(text, { next: { do: 'skip_unsupported' } });
  if (supported.length === 0) throw new UserError(text);
  tell({ level: 'warning', text: `left out: ${text}` });
  return { supported, unsupported };
}
