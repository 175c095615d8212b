// What reads a record or plans a dataset grows no faster than what it reads. Processor time of 2,500 and 10,000 trials, and of ten times as many rows, is
// compared, so that the speed of the machine does not matter. Of fewer trials, what is constant would hide what is quadratic.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { REPO } from '../support/cli.ts';

interface Measured {
  readonly lines: readonly { readonly what: string; readonly size: number; readonly rss_mb: number }[];
  readonly growth: readonly { readonly what: string; readonly exponent: number }[];
}

test('from 2,500 to 10,000 trials, and from 25,000 to 100,000 rows, commands grow at most linearly', () => {
  const text = execFileSync(
    process.execPath,
    [join(REPO, 'scripts/bench/size.ts'), '2500', '10000', '--json'],
    {
      encoding: 'utf8',
      cwd: REPO,
    },
  );
  const { lines, growth } = JSON.parse(text) as Measured;
  console.log(growth);
  expect(growth).toHaveLength(7);
  for (const { what, exponent } of growth) expect(exponent, what).toBeLessThanOrEqual(1.1);
  for (const { what, size, rss_mb } of lines) expect(rss_mb, `${what} at ${size}`).toBeLessThan(400);
});
