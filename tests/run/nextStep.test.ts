// What planning advises holds for a program; the command line turns the next step into a verb or a flag.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explain } from '../../src/cli/terminal/context.ts';
import { UserError } from '../../src/run/userError.ts';
import { StorageError } from '../../src/store/open.ts';

const RUN = join(import.meta.dirname, '../../src/run');
/** What a run that works warns of is read at its terminal, and names verbs. */
const AT_WORK = /^(?:attempt|control|record|schedule)\//;

test('the command line adds the verb or the flag, and the hint below it', () => {
  const ofRun = new UserError('run r1 has no verdicts', {
    next: { do: 'grade_run', results: '/data/nights', run: 'r1' },
  });
  expect(explain(ofRun).text).toBe(
    'run r1 has no verdicts\n  grade it with "swebatch evaluate r1 -o /data/nights"',
  );
  const both = new UserError('no', { hint: 'mend it', next: { do: 'choose_name' } });
  expect(explain(both)).toEqual({
    text: 'no\n  choose another --run-id\n  mend it',
    exitCode: 2,
    kind: 'usage',
  });
  expect(explain(new UserError('no', { hint: 'mend it' })).text).toBe('no\n  mend it');
});

test('no message before a run names a verb, and none begins with a flag', () => {
  const lines = readdirSync(RUN, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !AT_WORK.test(file))
    .flatMap((file) => readFileSync(join(RUN, file), 'utf8').split('\n'))
    .filter((line) => !/^\s*(?:\/\*\*|\*|\/\/)/.test(line));
  expect(lines.length).toBeGreaterThan(1000);
  expect(
    lines.filter((line) => /"swebatch |hint: [`'"].*(?<!npm )--[a-z]|UserError\([`'"]--/.test(line)),
  ).toEqual([]);
});

test('what went wrong first is told, not that something could not be closed after it', () => {
  const first = new StorageError('write_failed', 'cannot write swebatch.db: the disk is full');
  const closing = { error: new Error('closed badly'), suppressed: first };
  const both = Object.assign(new Error('An error was suppressed'), { name: 'SuppressedError' }, closing);
  expect(explain(both)).toEqual(explain(first));
});
