// The name of the next run of the demo.

const numberOf = (run) => Number(/^demo-(\d+)$/.exec(run)?.[1] ?? 0);

/**
 * From what `swebatch ls --json` says: the last demo run when it was interrupted, else a new one after it. Both names are
 * given, because a run cannot be continued when the dataset or the configuration has changed since.
 */
export function demoRunIds(runs) {
  const last = runs.reduce((best, run) => (numberOf(run.run) > numberOf(best.run) ? run : best), {
    run: '',
    status: 'complete',
  });
  const fresh = `demo-${numberOf(last.run) + 1}`;
  return last.status === 'complete' ? [fresh] : [last.run, fresh];
}
