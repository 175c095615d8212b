// The name of the next run of the demo.

const numberOf = (run, name) =>
  run.startsWith(`${name}-`) ? Number(/^\d+$/.exec(run.slice(name.length + 1))?.[0] ?? 0) : 0;

/**
 * From what `swebatch ls --json` says: the last demo run when it was interrupted, else a new one after it. Both names are
 * given, because a run cannot be continued when the dataset or the configuration has changed since.
 */
export function demoRunIds(runs, name = 'demo') {
  const last = runs.reduce((best, run) => (numberOf(run.run, name) > numberOf(best.run, name) ? run : best), {
    run: '',
    status: 'complete',
  });
  const fresh = `${name}-${numberOf(last.run, name) + 1}`;
  return last.status === 'complete' ? [fresh] : [last.run, fresh];
}
