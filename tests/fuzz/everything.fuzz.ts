// All targets together, each for its share of FUZZ_SECONDS. What fails says how to run that case again.
import { afterAll, describe, expect, test } from 'vitest';
import { configTargets } from './configurations.ts';
import { hasShared } from './corpus.ts';
import { importTargets } from './imports.ts';
import { readerTargets } from './readers.ts';
import { ROUND_TRIPS } from './roundTrips.ts';
import { streamTargets } from './streams.ts';
import { run, SECONDS, SEED, type Target } from './target.ts';

const ONLY = process.env.FUZZ_ONLY;
const groups: Readonly<Record<string, readonly Target[]>> = {
  streams: streamTargets(),
  'round trips': ROUND_TRIPS,
  importers: importTargets(),
  configurations: configTargets(),
  readers: readerTargets(),
};
const chosen = Object.entries(groups).map(
  ([name, all]) => [name, all.filter((each) => ONLY === undefined || each.name.includes(ONLY))] as const,
);
/** Readers are many: together they get half of the time. */
const share = (group: string): number => {
  const others = chosen.filter(([name]) => name !== 'readers').flatMap(([, all]) => all).length;
  const [mine, all] = group === 'readers' ? [chosen.at(-1)![1].length, 0.5] : [others, others > 0 ? 0.5 : 1];
  return (SECONDS * 1000 * all) / Math.max(1, mine);
};

const cases: Record<string, number> = {};
console.log(
  `FUZZ_SEED=${SEED}, ${SECONDS} s${hasShared ? '' : '; ../shared/data is not there: without its texts'}`,
);
afterAll(() => {
  const total = Object.values(cases).reduce((sum, n) => sum + n, 0);
  console.log(
    `${Object.entries(cases)
      .map(([name, n]) => `${String(n).padStart(9)}  ${name}`)
      .join('\n')}\n${total} cases of ${Object.keys(cases).length} targets, FUZZ_SEED=${SEED}`,
  );
});

describe.each(chosen.filter(([, all]) => all.length > 0))('%s', (group, targets) => {
  test.each(targets.map((each) => [each.name, each] as const))('%s', async (name, each) => {
    cases[name] = await run(each, share(group));
    expect(cases[name]).toBeGreaterThan(0);
  });
});
