/** All trials of a run, read page by page. */
import { useEffect, useMemo, useState } from 'react';
import {
  type RunDocument,
  type RunList,
  TRIALS_PER_PAGE,
  type TrialDocument,
  type TrialPage,
} from '../../documents/documents.ts';
import { type Entry, readDocument, useDocument } from './source.ts';

export function useRunId(name: string): Entry<RunList> & { id: number | undefined } {
  const entry = useDocument<RunList>('runs');
  return { ...entry, id: entry.data?.runs.find((run) => run.name === name)?.id };
}

export interface Trials extends Entry<readonly TrialDocument[]> {
  readonly total: number;
}

export function useTrials(runId: number | undefined): Trials {
  const first = useDocument<TrialPage>(runId === undefined ? undefined : `runs/${runId}/trials/0`);
  const pages = first.data ? Math.ceil(first.data.total / TRIALS_PER_PAGE) : 1;
  const list = useDocument<RunList>('runs');
  const [more, setMore] = useState<readonly TrialDocument[]>([]);
  // The list of runs counts what ended: whenever it changes, the pages after the first are read again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list stands for "something changed"
  useEffect(() => {
    if (runId === undefined || pages < 2) return setMore([]);
    let wanted = true;
    void Promise.all(
      Array.from({ length: pages - 1 }, (_, i) => readDocument<TrialPage>(`runs/${runId}/trials/${i + 1}`)),
    ).then(
      (rest) => wanted && setMore(rest.flatMap((page) => page.rows)),
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [runId, pages, list.data]);
  const data = useMemo(() => (first.data ? [...first.data.rows, ...more] : undefined), [first.data, more]);
  return { data, error: first.error, total: first.data?.total ?? 0 };
}

export const useRun = (runId: number | undefined): Entry<RunDocument> =>
  useDocument<RunDocument>(runId === undefined ? undefined : `runs/${runId}`);

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
