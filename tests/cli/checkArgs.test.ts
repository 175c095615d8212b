// What a word may be and a verb must not take: of every verb the same sentence, with the flag as it is written.
import { expect, test } from 'vitest';
import { checkArgs, flags, type GivenValues, kebab, type Verb } from '../../src/cli/flags/verb.ts';
import { allVerbs } from '../../src/cli/verbs.ts';

const required = ({ flags: table }: Verb): GivenValues =>
  Object.fromEntries(
    Object.entries(table).flatMap(([name, { place, choices, list }]) =>
      place === 'required' ? [[name, list ? ['x'] : (choices?.[0] ?? 'x')]] : [],
    ),
  );

test('a flag of one value that is given twice is refused', async () => {
  let seen = 0;
  for (const verb of await allVerbs())
    for (const [name, { place, list, repeats, type }] of Object.entries(verb.flags)) {
      if (place || list || repeats || type === 'boolean') continue;
      seen++;
      const given = { ...required(verb), [name]: ['a', 'b'] };
      await expect(verb.run(given), verb.name).rejects.toThrow(`--${kebab(name)}: given more than once`);
    }
  expect(seen).toBeGreaterThan(80);
});

test('a number is one, a list that repeats is there when nothing was given', () => {
  const table = flags({
    attempt: { type: 'number' },
    dryRun: { type: 'boolean', default: false },
    file: { type: 'string', repeats: true },
  });
  for (const attempt of ['two', '', ' '])
    expect(() => checkArgs(table, { attempt })).toThrow('--attempt: must be a number');
  expect(checkArgs(table, { attempt: '2', other: '1' })).toEqual({ attempt: 2, dryRun: false, file: [] });
});
