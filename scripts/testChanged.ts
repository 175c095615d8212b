// `npm run test:changed`: the tests that a change touches. A change is what differs from a commit, `main` unless one is named, and what is not committed.
//   node scripts/testChanged.ts [COMMIT] [--list]
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { reachedFrom, testFiles, textOf } from '../tests/support/projects.ts';

const ROOT = join(import.meta.dirname, '..');

/**
 * Tests that start the program load nothing of it: which of them a room of the sources concerns is said here. The first line that fits a
 * changed file counts.
 */
const PROGRAM: readonly (readonly [source: RegExp, tests: RegExp])[] = [
  [/^src\/viewer\//, /^tests\/viewer\/|controlButtons/],
  [/^src\/(report|results)\//, /^tests\/(report|results)\/|cli\/(show|ls|import)|e2e\/(reproduce|replay)/],
  [/^src\/(grading|suites)\//, /^tests\/(grading|suites)\/|cli\/(evaluate|gradeMatrix)|e2e\/(run|harbor)/],
  [/^src\/dataset\//, /^tests\/dataset\/|cli\/datasets|e2e\/(run|manifest)\./],
  [/^src\/model\//, /^tests\/model\/|e2e\/(dialectRuns|replay)|faults\/(model|replies|money)/],
  [/^src\/agent\/(installed|gateway)\//, /^tests\/agent\/|e2e\/(agentPrograms|commandAgent|program)/],
  [/^src\/agent\//, /^tests\/agent\/|e2e\/(run|replay|reproduce)\.|faults\/(replies|ownEnd)/],
  [/^src\/environment\/kubernetes\//, /^tests\/environment\/kubernetes\//],
  [/^src\/environment\//, /^tests\/environment\/|e2e\/(run|images|diskFloorRun)\.|faults\//],
  [/^src\/(run|store)\//, /^tests\/(run|store|faults)\/|e2e\/(run|batch|replay|reproduce)\./],
  [/^src\/cli\//, /^tests\/cli\/|e2e\/(run|program)\.|readme/],
  [/^src\/(config|template)\//, /^tests\/(config|cli)\/|e2e\/(run|publishedConfigs)\./],
  [/^src\/formats\//, /^tests\/(formats|results)\/|cli\/import|demo\/reproduceDoc/],
  // The ground floor carries every room: one run from its first word to its verdict, one that is killed, one that is read.
  [/^src\//, /e2e\/(run|reproduce)\.|faults\/crash|cli\/(ls|show|words\/mistakes)/],
];

/** Tests that read whole folders as text, and name no file of theirs. */
const READ: readonly (readonly [changed: RegExp, tests: RegExp])[] = [
  [/^src\//, /^tests\/(architecture|leaves|names)\.test/],
  [/\.md$/, /^tests\/(docs|readme|proofs|recipes)\.test/],
];

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean);

/** What the tests of `npm test` that a change of these files can break are. */
export function touchedBy(changed: readonly string[], tests: readonly string[] = testFiles()): string[] {
  const rooms = changed.flatMap((file) => PROGRAM.find(([source]) => source.test(file))?.[1] ?? []);
  // What is no module is read by its name: a page of docs, a configuration, a script.
  const read = changed.filter((file) => !file.startsWith('tests/') && !/\.tsx?$/.test(file)).map(nameOf);
  return tests.filter((test) => {
    const reached = reachedFrom(test);
    if (changed.some((file) => reached.has(file))) return true;
    if (read.some((name) => textOf(test).includes(name))) return true;
    if (READ.some(([file, tests]) => tests.test(test) && changed.some((one) => file.test(one)))) return true;
    return reached.has('tests/support/cli.ts') && rooms.some((room) => room.test(test));
  });
}

/** Short names stand in many texts: those count with their folder. */
const nameOf = (file: string) => (basename(file).length < 8 ? file : basename(file));

if (import.meta.main) {
  const words = process.argv.slice(2);
  const base = words.find((word) => !word.startsWith('--')) ?? 'main';
  const changed = [
    ...git('diff', '--name-only', `${base}...HEAD`),
    ...git('diff', '--name-only', 'HEAD'),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
  const files = touchedBy([...new Set(changed)]).filter((file) => existsSync(join(ROOT, file)));
  if (words.includes('--list') || files.length === 0)
    process.stdout.write(files.length === 0 ? 'no test is touched\n' : `${files.join('\n')}\n`);
  else
    process.exitCode =
      spawnSync('npx', ['vitest', 'run', ...files], { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}
