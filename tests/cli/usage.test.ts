// How words become values, what a person reads when a line cannot be meant, and the commands that messages offer to copy.
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { everyVerb } from '../../src/cli/flags/everyVerb.ts';
import { parseWords } from '../../src/cli/flags/parseWords.ts';
import { defineVerb, type Flags, flags } from '../../src/cli/flags/verb.ts';
import { commandOn } from '../../src/cli/terminal/context.ts';

test('a command to copy names the results root, unless it is the default one', () => {
  expect(commandOn(resolve('results'), 'resume r1')).toBe('"swebatch resume r1"');
  expect(commandOn(resolve('out', 'night'), 'resume r1')).toBe(
    `"swebatch resume r1 -o ${join('out', 'night')}"`,
  );
  expect(commandOn('/data/nights', 'ls r1')).toBe('"swebatch ls r1 -o /data/nights"');
  expect(commandOn('/data/my nights', 'ls')).toBe(`"swebatch ls -o '/data/my nights'"`);
  expect(commandOn(process.cwd(), 'ls')).toBe('"swebatch ls -o ."');
});

const verbWith = (table: Flags) =>
  defineVerb({
    name: 'verb',
    describe: '',
    flags: { ...table, ...everyVerb },
    examples: [],
    run: async () => 0,
  });
const verb = verbWith(
  flags({
    run: { place: 'required' },
    command: { place: 'optional', choices: ['pause', 'stop'] },
    workers: { alias: ['w', 'max_workers'], type: 'number' },
    dataDir: { type: 'string' },
    instance: { alias: 'i', list: true },
    parser: { repeats: true },
    evaluate: { type: 'boolean' },
    retry: { type: 'string', valueOptional: true },
    noWorse: { type: 'string' },
    pull: { choices: ['never', 'always'] },
  }),
);
const read = (line: string) => parseWords(line.split(' ').filter(Boolean), verb);

test.each([
  ['r1 -w 4', { run: 'r1', workers: '4' }],
  ['-w4 r1 stop', { run: 'r1', command: 'stop', workers: '4' }],
  ['--workers=4 r1', { run: 'r1', workers: '4' }],
  ['r1 -w =3', { run: 'r1', workers: '=3' }],
  ['r1 -w=-3', { run: 'r1', workers: '-3' }],
  ['r1 -w -3', { run: 'r1', workers: '-3' }],
  ['r1 --data-dir -3:', { run: 'r1', dataDir: '-3:' }],
  ['r1 --max_workers 4 --dataDir x', { run: 'r1', workers: '4', dataDir: 'x' }],
  ['r1 -w 1 -w 2', { run: 'r1', workers: ['1', '2'] }],
  ['r1 -i a b -i c', { run: 'r1', instance: ['a', 'b', 'c'] }],
  ['-i a -i - --evaluate r1', { run: 'r1', instance: ['a', '-'], evaluate: true }],
  ['--parser a r1 --parser b', { run: 'r1', parser: ['a', 'b'] }],
  ['r1 --evaluate --no-evaluate', { run: 'r1', evaluate: false }],
  ['--evaluate=false r1 --no-color', { run: 'r1', evaluate: false, color: false }],
  ['--evaluate true r1', { run: 'r1', evaluate: true }],
  ['--color r1 --color=auto', { run: 'r1', color: 'auto' }],
  ['r1 --retry', { run: 'r1', retry: '' }],
  ['r1 --retry --evaluate', { run: 'r1', retry: '', evaluate: true }],
  ['r1 --retry infra', { run: 'r1', retry: 'infra' }],
  ['--data-dir= r1', { run: 'r1', dataDir: '' }],
  ['r1 --no-worse 3pp', { run: 'r1', noWorse: '3pp' }],
  ['r1 --no-worse=3pp', { run: 'r1', noWorse: '3pp' }],
  ['-h', { help: true }],
  ['r1 -- stop', { run: 'r1', command: 'stop' }],
])('%s', (line, given) => {
  const parsed = read(line);
  expect({ ...parsed.given }).toEqual(given);
  if (!Object.hasOwn(given, 'help')) expect(parsed.mistakes).toEqual([]);
});

test.each([
  ['r1 --wrokers 3', ['there is no option --wrokers; did you mean --workers?']],
  ['r1 --my-flag=3', ['there is no option --my-flag']],
  ['-x --foo', ['there is no option -x', 'there is no option --foo']],
  ['r1 --no-workers', ['there is no option --no-workers; did you mean --workers?']],
  ['r1 --no-evalute', ['there is no option --no-evalute; did you mean --no-evaluate?']],
  ['r1 stop b', ['unexpected argument "b"']],
  ['r1 -- --evaluate', ['command "--evaluate" must be one of pause, stop']],
  ['stop r1', ['command "r1" must be one of pause, stop; the order is: swebatch verb <run> [command]']],
  ['r1 --pull nevr', ['--pull "nevr" must be one of never, always; did you mean never?']],
  ['r1 --color=blue', ['--color "blue" must be one of auto, always, never']],
  ['r1 --pull', ['--pull needs a value: one of never, always']],
  ['r1 -w --evaluate', ['-w needs a value']],
  ['r1 -i', ['-i needs a value']],
  ['r1 --evaluate=yes', ['--evaluate takes no value (it is "yes"); say --evaluate or --no-evaluate']],
  ['', ['<run> is missing: swebatch verb <run> [command]']],
])('the mistake of "%s"', (line, mistakes) => expect(read(line).mistakes).toEqual(mistakes));

test('what has to stand behind a verb is named, without what is there already', () => {
  const two = verbWith(flags({ source: { place: 'required' }, files: { place: 'required', list: true } }));
  const missing = (...words: string[]) => parseWords(words, two).mistakes;
  expect(missing()).toEqual(['<source> and <files> are missing: swebatch verb <source> <files..>']);
  expect(missing('a')).toEqual(['<files> is missing: swebatch verb <source> <files..>']);
});
