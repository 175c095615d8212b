// Every interval that a report prints holds the truth as often as it says, and no test finds what is not there more often than it says.
import { expect, test } from 'vitest';
import { coverage, drawsOfResources } from '../../scripts/statistics/coverage.ts';

const DRAWS = 1000;
/** Of a share that is measured by so many draws. */
const sampling = (share: number, draws: number): number => 2.6 * Math.sqrt((share * (1 - share)) / draws);

test('95 is said where at least 93 is got, and 5 where at most 6 is', () => {
  const wrong: string[] = [];
  for (const { what, says, cells } of coverage(DRAWS)) {
    // The p of clusters is not printed, for it finds too much; the forecast of few attempts says that it is rough.
    if (what.startsWith('by repository') || what.startsWith('forecast')) continue;
    for (const { of, got } of cells) {
      console.log(`${what}, ${of}: ${got}`);
      const draws = /geometric means|cost per resolved/.test(what)
        ? drawsOfResources(DRAWS, Number(of.slice('n = '.length)))
        : /sign-flip|stratified|n = 500|sign test/.test(`${what} ${of}`)
          ? DRAWS / 4
          : DRAWS;
      if (got === null) continue;
      if (says === 0.95 ? got < 0.93 - sampling(0.93, draws) : got > 0.06 + sampling(0.06, draws))
        wrong.push(`${what}, ${of}: ${got}`);
    }
  }
  expect(wrong).toEqual([]);
});
