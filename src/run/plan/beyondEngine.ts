/** Tasks that ask for more processors than the engine has: no container of theirs would start there. */

import type { LoadedRow } from '../../dataset/dataset.ts';
import { engineInfo } from '../../environment/places/engineInfo.ts';
import { needsOf } from '../../suites/suites.ts';
import type { Variables } from '../caller.ts';
import { requireEngine } from '../places/engines.ts';
import { enginesNeeded } from './preflight.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

const ANSWER_MS = 5000;

/** A row that was left in its file is of a kind that asks for nothing, and of a refused one nothing was read. */
const askedBy = (row: LoadedRow): number =>
  row.head || row.refused !== undefined ? 0 : (needsOf(row.instance).processors ?? 0);

/** `cpus`: of the smallest engine that is used. */
export const beyondEngine = <R extends LoadedRow>(rows: readonly R[], cpus: number): readonly R[] =>
  rows.map((row) => {
    const asked = askedBy(row);
    return asked > cpus
      ? { ...row, refused: `it asks for ${asked} processors, and the engine has ${cpus}` }
      : row;
  });

/** An engine that does not answer refuses nothing here: that it does not is told later, and a plan can be made without it. */
export async function withinEngines<R extends LoadedRow>(
  rows: readonly R[],
  resolved: Pick<ResolvedConfig, 'arms' | 'grading'>,
  env: Variables,
): Promise<readonly R[]> {
  if (!rows.some((row) => askedBy(row) > 0)) return rows;
  const asked = enginesNeeded(resolved).map(async (host) => {
    const docker = host === undefined ? undefined : requireEngine(env, host).docker;
    const engine = await engineInfo(docker, ANSWER_MS);
    return engine.ok && engine.cpus > 0 ? engine.cpus : Number.POSITIVE_INFINITY;
  });
  const answered = await Promise.allSettled(asked);
  const cpus = answered.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  return beyondEngine(rows, Math.min(...cpus));
}
