// What yargs lets through and a verb must not take: of every verb the same sentence, with the flag as it is written.
import { beforeAll, expect, test } from 'vitest';
import { checkArgs, flags, kebab, type Verb } from '../../src/cli/flags/verb.ts';
import { loadVerbs } from '../../src/cli/verbs.ts';

let verbs: Verb[] = [];
beforeAll(async () => {
  verbs = await loadVerbs();
});

function given(verb: Verb): Record<string, unknown> {
  const args: Record<string, unknown> = {};
  for (const [name, { place, choices, list, default: fallback }] of Object.entries(verb.flags))
    if (fallback !== undefined) args[name] = fallback;
    else if (place === 'required') args[name] = list ? ['x'] : (choices?.[0] ?? 'x');
  return args;
}

test('a flag of one value that is given twice is refused', async () => {
  let seen = 0;
  for (const verb of verbs)
    for (const [name, { place, choices, list, check }] of Object.entries(verb.flags)) {
      // Some flags of `evaluate` repeat; a policy is one of two shapes, and says so.
      if (name === 'policy' || place || choices || list || check?.safeParse(['a', 'b']).success) continue;
      seen++;
      const args = { ...given(verb), [name]: ['a', 'b'] };
      await expect(verb.run(args), verb.command).rejects.toThrow(`--${kebab(name)}: given more than once`);
    }
  expect(seen).toBeGreaterThan(80);
});

test('what is not the type of its flag is refused, with or without a check of its own', async () => {
  const table = flags({ attempt: { type: 'number' }, dryRun: { type: 'boolean', default: false } });
  await expect(checkArgs(table, { attempt: Number.NaN, dryRun: false })).rejects.toThrow('--attempt: ');
  await expect(checkArgs(table, { dryRun: 'x' })).rejects.toThrow('--dry-run: ');
  expect(await checkArgs(table, { attempt: 2, dryRun: true, other: 1 })).toEqual({
    attempt: 2,
    dryRun: true,
  });
  expect(await checkArgs(table, { dryRun: true, other: 1 })).toEqual({ dryRun: true });
});
