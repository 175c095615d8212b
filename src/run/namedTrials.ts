/** Names that a person gives in a run: of an arm, an epoch, an instance by its id or by a part that no other one has. */
import { dirname } from 'node:path';
import { nearestId } from '../dataset/nearestId.ts';
import type { Store } from '../store/open.ts';
import { armsOf, findRun, instanceIdsOf, type RunRow } from '../store/records/runs.ts';
import { requireRun } from './resultsRoot.ts';
import { UserError } from './userError.ts';

/** A run, or those trials of it that RUN/ARM, RUN@EPOCH or RUN/ARM@EPOCH means. */
export interface NamedTrials {
  readonly run: RunRow;
  readonly arm?: string | undefined;
  readonly epoch?: number | undefined;
}

export function namedTrials(store: Store, selector: string): NamedTrials {
  const [, name = '', rest = ''] = /^([^/@]+)(.*)$/s.exec(selector) ?? [];
  const run = rest === '' || 'id' in findRun(store, selector) ? null : findRun(store, name);
  if (run === null || !('id' in run)) return { run: requireRun(store, selector) };
  const arms = armsOf(store, run.id).map((arm) => arm.name);
  // Names of models may hold slashes and "@" themselves: what is an arm as it stands is one.
  const whole = rest.startsWith('/') ? rest.slice(1) : null;
  if (whole !== null && arms.includes(whole)) return { run, arm: whole };
  const [, before = '', epoch] = /^(.*)@(\d{1,6})$/s.exec(rest) ?? [];
  const arm = epoch === undefined ? rest.slice(1) : before.slice(1) || undefined;
  if (arm !== undefined && !arms.includes(arm))
    throw new UserError(`run ${run.name} has no arm "${arm}"; it has ${arms.join(', ')}`);
  return { run, arm, epoch: epoch === undefined ? undefined : Number(epoch) };
}

export const isNamed =
  ({ arm, epoch }: Omit<NamedTrials, 'run'>) =>
  (line: { readonly arm: string; readonly epoch: number }): boolean =>
    (arm ?? line.arm) === line.arm && (epoch ?? line.epoch) === line.epoch;

const SHOWN = 8;

/** The id that is this word, else those that hold it. */
export function idsMeant(word: string, ids: ReadonlySet<string>): string[] {
  if (ids.has(word)) return [word];
  return word === '' ? [] : [...ids].filter((id) => id.includes(word));
}

const namesText = (words: readonly string[], ids: Iterable<string>): string =>
  words.map((word) => `"${word}"`).join(', ') + (words.length === 1 ? nearestId(words[0]!, ids) : '');

/** The id that each word means in a run. Throws a UserError with every word that means none, or several. */
export function requireInstances(store: Store, run: RunRow, words: readonly string[]): string[] {
  const ids = new Set(instanceIdsOf(store, run.id));
  const meant = words.map((word) => ({ word, found: idsMeant(word, ids) }));
  const unknown = meant.filter(({ found }) => found.length === 0).map(({ word }) => word);
  const several = meant
    .filter(({ found }) => found.length > 1)
    .map(({ word, found }) => `"${word}" names several instances: ${found.slice(0, SHOWN).join(', ')}`);
  if (unknown.length > 0)
    throw new UserError(`run ${run.name} has no instance ${namesText(unknown, ids)}`, {
      next: { do: 'list_trials', results: dirname(store.name), run: run.name },
    });
  if (several.length > 0) throw new UserError(several.join('\n'));
  return [...new Set(meant.flatMap(({ found }) => found))];
}
