/** Logs of Multi-SWE-bench's compiled languages: Maven, Gradle, Go, Cargo, automake, googletest, CTest. */
import { eachLine } from '../../../base/python/lines.ts';
import { strip, withoutAnsi } from '../../../base/python/text.ts';
import { behind, eachStripped, emptySets, type Shape, type TestSets } from './shape.ts';

const COUNTS =
  /Tests run:\s{0,4}(\d{1,9}),\s{0,4}Failures:\s{0,4}(\d{1,9}),\s{0,4}Errors:\s{0,4}(\d{1,9}),\s{0,4}Skipped:\s{0,4}(\d{1,9}),\s{0,4}Time elapsed:\s{0,4}[\d.]{1,20}\s/;

/** A class of tests by its counts; one that ran nothing at all is nowhere. */
function count(name: string, [, run, failures, errors, skipped]: RegExpExecArray, sets: TestSets): void {
  const broken = Number(failures) + Number(errors) > 0;
  if (broken) sets.failed.add(name);
  else if (Number(skipped) === Number(run)) sets.skipped.add(name);
  else if (Number(run) > 0) sets.passed.add(name);
}

/** `Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in com.example.ATest`. */
export const mavenPlain: Shape = (log) => {
  const sets = emptySets();
  eachLine(log, (line) => {
    const found = COUNTS.exec(line);
    if (found === null) return;
    const rest = line.slice(found.index + found[0].length);
    const at = rest.indexOf(' in ', 1);
    if (at > 0 && rest.length > at + 4) count(rest.slice(at + 4), found, sets);
  });
  return sets;
};

/** The same after its colours are taken off, as all suites of Maven but fastjson2's do. */
export const maven: Shape = (log) => mavenPlain(withoutAnsi(log));

/** Gson's harness hands its flags to `findall` where a position belongs, and so begins at the ninth character. */
const behindEighth = (log: string): string => [...log.slice(0, 16)].slice(8).join('') + log.slice(16);

const BROKEN =
  /^Tests run: \d{1,9}, Failures: \d{1,9}, Errors: \d{1,9}, Skipped: \d{1,9}, Time elapsed: [\d.]{1,20} sec {1,20}<<< FAILURE!/;

/** Older Surefire names the class on a line of its own, before the counts. A failure is also that of the class on the line above it. */
export const mavenRunning: Shape = (log) => {
  const sets = emptySets();
  let running: string | undefined;
  let above = '';
  eachLine(behindEighth(log), (line) => {
    const found = COUNTS.exec(line);
    if (found !== null && running !== undefined && line.includes(' sec')) count(running, found, sets);
    if (above !== '' && BROKEN.test(line)) sets.failed.add(above);
    if (line.startsWith('Tests run:')) running = undefined;
    const at = line.indexOf('Running ');
    above = at < 0 ? '' : line.slice(at + 'Running '.length);
    if (at >= 0) running ??= strip(above) || undefined;
  });
  return sets;
};

const TASK = '> Task :';

/** A task or a test of Gradle with the word behind it; a task without a word went well. */
function gradleLine(line: string): { name: string; word: string } | undefined {
  const at = line.lastIndexOf(' ');
  const [name, word] = [line.slice(0, at), line.slice(at + 1)];
  if (line.startsWith(TASK)) {
    const task = line.slice(TASK.length);
    if (task !== '' && !task.includes(' ')) return { name: task, word: 'PASSED' };
    const bare = name.slice(TASK.length);
    return bare === '' || bare.includes(' ')
      ? undefined
      : { name: bare, word: word === 'PASSED' ? '' : word };
  }
  const arrow = name.indexOf(' > ');
  const test = arrow > 0 && arrow + 3 < name.length && ['PASSED', 'FAILED', 'SKIPPED'].includes(word);
  return test ? { name, word } : undefined;
}

/** A failure holds against a pass before or after it; what was skipped is on its list whatever else is said of it. */
const gradleWith =
  (good: readonly string[]): Shape =>
  (log) => {
    const sets = emptySets();
    eachLine(log, (line) => {
      const { name, word } = gradleLine(line) ?? { name: '', word: '' };
      if (good.includes(word)) {
        if (!sets.failed.has(name)) sets.passed.add(name);
      } else if (word === 'FAILED') {
        sets.failed.add(name);
        sets.passed.delete(name);
      } else if (word === 'SKIPPED' || word === 'NO-SOURCE') sets.skipped.add(name);
    });
    return sets;
  };
export const gradle = gradleWith(['PASSED', 'UP-TO-DATE']);

/** Notes a pass or a failure; a failure holds. A skip counts only against a failure of the same name, and then contradicts it. */
function note(sets: TestSets, status: 'passed' | 'failed' | 'skipped', name: string, kept = name): void {
  if (status === 'passed') {
    if (sets.failed.has(name)) return;
    sets.skipped.delete(name);
    sets.passed.add(kept);
  } else if (status === 'failed') {
    sets.passed.delete(name);
    sets.skipped.delete(name);
    sets.failed.add(kept);
  } else if (!sets.passed.has(name) && sets.failed.has(name)) sets.skipped.add(kept);
}

export const gradleCached: Shape = eachStripped((line, sets) => {
  const { name, word } = gradleLine(line) ?? { name: '', word: '' };
  if (['PASSED', 'UP-TO-DATE', 'FROM-CACHE'].includes(word)) note(sets, 'passed', name);
  else if (word === 'FAILED') note(sets, 'failed', name);
  else if (word === 'SKIPPED' || word === 'NO-SOURCE') note(sets, 'skipped', name);
});

const firstWord = (text: string): string => /^\S*/.exec(text)![0];

const GO_MARKS = new Map([
  ['--- PASS: ', 'passed'],
  ['--- FAIL: ', 'failed'],
  ['--- SKIP: ', 'skipped'],
] as const satisfies readonly [string, keyof TestSets][]) as ReadonlyMap<string, keyof TestSets>;
const GO_MARK = '--- PASS: '.length;

/** `FAIL example.com/package 0.1s`. */
const goPackage = (line: string): string | undefined =>
  line.startsWith('FAIL') ? /^FAIL:?\s?(.+?)\s/.exec(line)?.[1] : undefined;

/** `keep` is what of a name is kept: grpc-go and go-zero drop the subtest. */
const goWith = (keep: (name: string) => string): Shape =>
  eachStripped((line, sets) => {
    const status = GO_MARKS.get(line.slice(0, GO_MARK));
    const name = status !== undefined ? firstWord(line.slice(GO_MARK)) : goPackage(line);
    if (name) note(sets, status ?? 'failed', name, keep(name));
  });
export const go = goWith((name) => name);
export const goTopLevel = goWith((name) =>
  name.includes('/') ? name.slice(0, name.lastIndexOf('/')) : name,
);

/** `test a::b ... ok`. */
export const cargo: Shape = eachStripped((line, sets) => {
  const found = /^test (\S+) ... (ok|FAILED|ignored)/.exec(line);
  if (found === null) return;
  const [, name, word] = found;
  (word === 'ok' ? sets.passed : word === 'FAILED' ? sets.failed : sets.skipped).add(name!);
});

/** `PASS: tests/a`. */
export const automake: Shape = eachStripped((line, sets) => {
  const found = /^(PASS|FAIL|SKIP): (\S+)$/.exec(line);
  if (found === null) return;
  const [, word, name] = found;
  (word === 'PASS' ? sets.passed : word === 'FAIL' ? sets.failed : sets.skipped).add(name!);
});

const OK = ['[       OK ] ', '\x1b[0;32m[       OK ] \x1b[0m', '\x1b[92m---- Passed: '];
const BAD = ['[  FAILED  ] ', '\x1b[0;31m[  FAILED  ] \x1b[0m', '\x1b[91m**** FAILED: '];

function googleName(line: string, marks: readonly string[]): string | undefined {
  const mark = marks.find((each) => line.startsWith(each));
  if (mark === undefined) return undefined;
  const rest = mark === marks[2] ? line.slice(mark.length).replace(/\x1b\[0m$/, '') : line.slice(mark.length);
  const name = firstWord(rest);
  const more = rest.slice(name.length);
  return name !== '' && (more === '' || (more.startsWith(' (') && more.endsWith(')'))) ? name : undefined;
}

/** googletest, and the test program of Pony. */
export const googletest: Shape = eachStripped((line, sets) => {
  const passed = googleName(line, OK);
  if (passed !== undefined) sets.passed.add(passed);
  const failed = googleName(line, BAD);
  if (failed !== undefined) sets.failed.add(failed);
});

const CTEST = /^\d+\/\d+\s*Test\s*#\d+:\s*/i;

/** The name before a row of dots; undefined where there are none. */
function beforeDots(text: string): string | undefined {
  let end = text.length;
  while (text[end - 1] === '.') end--;
  return end === text.length ? undefined : text.slice(0, end).trimEnd();
}

/** `1/2 Test #1: name .....   Passed    0.01 sec`. */
export const ctest: Shape = eachStripped((line, sets) => {
  const head = CTEST.exec(line);
  if (head === null) return;
  const rest = line.slice(head[0].length);
  const passed = rest.lastIndexOf('Passed');
  const good = passed < 0 ? undefined : beforeDots(rest.slice(0, passed).trimEnd());
  if (good !== undefined) sets.passed.add(good);
  if (!rest.endsWith('*Failed')) return;
  const bad = beforeDots(
    rest
      .slice(0, -'Failed'.length)
      .replace(/\*{1,20}$/, '')
      .trimEnd(),
  );
  if (bad !== undefined) sets.failed.add(bad);
});

/** CTest as Catch2's rows have it: in lower case, with the checks of CMake itself, and failures with their time. */
export const ctestLower: Shape = eachStripped((given, sets) => {
  const line = given.toLowerCase();
  const check = behind(line, '-- performing test ') ?? '';
  for (const [end, set] of [
    [' - success', sets.passed],
    [' - failed', sets.failed],
    [' - skipped', sets.skipped],
  ] as const)
    if (check.endsWith(end)) set.add(check.slice(0, -end.length));
  const head = /^\d+\/\d+ test\s+#\d+: /.exec(line);
  if (head === null) return;
  const rest = line.slice(head[0].length);
  const passed = rest.lastIndexOf('  passed ');
  const good = passed < 0 ? undefined : beforeDots(rest.slice(0, passed).trimEnd());
  if (good !== undefined) sets.passed.add(good);
  const failed = rest.lastIndexOf('***failed ');
  const bad = failed < 0 ? undefined : beforeDots(rest.slice(0, failed));
  if (bad !== undefined) sets.failed.add(bad);
});
