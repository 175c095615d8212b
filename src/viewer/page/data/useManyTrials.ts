/** Trials of several runs at once, read again when the list of runs changes. */
import { useEffect, useState } from 'react';
import {
  type RunList,
  TRIALS_PER_PAGE,
  type TrialDocument,
  type TrialPage,
} from '../../documents/documents.ts';
import { readDocument } from './source.ts';

async function allTrials(run: number): Promise<TrialDocument[]> {
  const rows: TrialDocument[] = [];
  for (let page = 0; ; page += 1) {
    const next = await readDocument<TrialPage>(`runs/${run}/trials/${page}`);
    rows.push(...next.rows);
    if ((page + 1) * TRIALS_PER_PAGE >= next.total) return rows;
  }
}

export function useManyTrials(runs: readonly number[], list: RunList | undefined) {
  const key = runs.join(',');
  const [found, setFound] = useState<{ trials: ReadonlyMap<number, TrialDocument[]>; error: string }>({
    trials: new Map(),
    error: '',
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list stands for "something changed in the database"
  useEffect(() => {
    let wanted = true;
    const ids = key === '' ? [] : key.split(',').map(Number);
    Promise.all(ids.map(async (id) => [id, await allTrials(id)] as const)).then(
      (all) => wanted && setFound({ trials: new Map(all), error: '' }),
      (error: unknown) => wanted && setFound((old) => ({ ...old, error: String(error) })),
    );
    return () => {
      wanted = false;
    };
  }, [key, list]);
  return found;
}
