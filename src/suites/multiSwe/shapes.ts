/** Logs of Multi-SWE-bench, and which shape those of each repository have. */
import { eachLine } from '../../base/python/lines.ts';
import { strip, withoutAnsi } from '../../base/python/text.ts';
import { ParserError } from '../../grading/parsers/logParser.ts';

export interface TestSets {
  readonly passed: Set<string>;
  readonly failed: Set<string>;
  readonly skipped: Set<string>;
}

/** A shape reads the text of a run for the names of its tests. Pure, and linear in the length of the log. */
export type Shape = (log: string) => TestSets;

const emptySets = (): TestSets => ({ passed: new Set(), failed: new Set(), skipped: new Set() });

/** A reader that looks at each line by itself; in an empty one no test is named. */
const eachStripped =
  (read: (line: string, sets: TestSets) => void): Shape =>
  (log) => {
    const sets = emptySets();
    eachLine(log, (line) => {
      if (line !== '') read(strip(line), sets);
      return undefined;
    });
    return sets;
  };

/** The text behind a mark at the start of a line. */
export const behind = (line: string, mark: string): string | undefined =>
  line.startsWith(mark) && line.length > mark.length ? line.slice(mark.length) : undefined;

const LONGEST_TAIL = 80;

/** A text without what a pattern finds at its end; the pattern sees only the last characters, which bounds its time. */
export function withoutTail(text: string, tail: RegExp): string {
  const from = Math.max(1, text.length - LONGEST_TAIL);
  const found = tail.exec(text.slice(from));
  return found === null ? text : text.slice(0, from + found.index);
}

// Logs of Multi-SWE-bench's script languages: Jest, Mocha, Vitest.

const IN_BRACKETS = /\s\(\d{0,15}\.?\d{1,15}\s{0,5}\w{1,15}\)$/;
const IN_BRACKETS_OR_BARE = /\s{0,5}\d{0,15}\.?\d{1,15}\s{0,5}(?:ms|s|m)$/;
const MOCHA_TIME = /\s\(\d{0,15}\.?\d{0,15}\s{0,5}\w{1,15}\)$/;
const INSOMNIA_TAIL = /(?:\s\(\d{1,9}\s{1,5}tests\))?(?:\s{0,5}\(?\d{0,15}\.?\d{1,15}\s{0,5}\w{1,15}\)?)?$/;

/** A suite with its tests below it: each test is named with its suite. `name` takes off the time of a test. */
const jestWith =
  (name: (text: string) => string): Shape =>
  (log) => {
    let suite: string | undefined;
    const test = (text: string, set: Set<string>) => {
      if (suite === undefined) throw new ParserError('a test stands before any suite');
      set.add(`${suite}:${name(text)}`);
    };
    const begin = (text: string, set: Set<string>) => {
      suite = name(text);
      set.add(suite);
    };
    const read = (line: string, { passed, failed }: TestSets) => {
      const [good, bad] = [behind(line, 'PASS '), behind(line, 'FAIL ')];
      if (good !== undefined) begin(good, passed);
      if (bad !== undefined) begin(bad, failed);
      const [held, broke] = [behind(line, '✓ '), behind(line, '✕ ')];
      if (held !== undefined) test(held, passed);
      if (broke !== undefined) test(broke, failed);
    };
    return eachStripped(read)(log);
  };
const jest = jestWith((text) => withoutTail(text, IN_BRACKETS));

/** Darkreader's rows take off any bracket at the end. */
const jestAnyBracket = jestWith((text) => {
  if (!text.endsWith(')')) return text;
  const at = text.search(/\s\(/);
  return at > 0 ? text.slice(0, at).trimEnd() : text;
});

/** `✔ name (12ms)`, and failures by their number. */
const mocha: Shape = eachStripped((line, sets) => {
  const passed = behind(line, '✔ ');
  if (passed !== undefined) sets.passed.add(withoutTail(passed, MOCHA_TIME));
  const failed = /^\d{1,9}\) (.+)$/.exec(line)?.[1];
  if (failed !== undefined) sets.failed.add(withoutTail(failed, MOCHA_TIME));
});

/** The texts behind each mark, without the time at its end. */
const marked = (...marks: readonly (readonly [mark: string, list: keyof TestSets, time: RegExp])[]): Shape =>
  eachStripped((line, sets) => {
    for (const [mark, list, time] of marks) {
      const name = behind(line, mark);
      if (name !== undefined) sets[list].add(withoutTail(name, time));
    }
  });

/** `✓ name 12ms`. */
const vitest = marked(['✓ ', 'passed', IN_BRACKETS_OR_BARE], ['× ', 'failed', IN_BRACKETS_OR_BARE]);

/** Files of Vitest and of Jest in one log. */
const insomnia = marked(
  ['✓ ', 'passed', INSOMNIA_TAIL],
  ['PASS ', 'passed', IN_BRACKETS],
  ['FAIL ', 'failed', IN_BRACKETS],
);

// Logs of Multi-SWE-bench's compiled languages: Maven, Gradle, Go, Cargo, automake, googletest, CTest.

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
const mavenPlain: Shape = (log) => {
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
const maven: Shape = (log) => mavenPlain(withoutAnsi(log));

/** Gson's harness hands its flags to `findall` where a position belongs, and so begins at the ninth character. */
const behindEighth = (log: string): string => [...log.slice(0, 16)].slice(8).join('') + log.slice(16);

const BROKEN =
  /^Tests run: \d{1,9}, Failures: \d{1,9}, Errors: \d{1,9}, Skipped: \d{1,9}, Time elapsed: [\d.]{1,20} sec {1,20}<<< FAILURE!/;

/** Older Surefire names the class on a line of its own, before the counts. A failure is also that of the class on the line above it. */
const mavenRunning: Shape = (log) => {
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
const gradle = gradleWith(['PASSED', 'UP-TO-DATE']);

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

const GRADLE_WORDS: Readonly<Record<string, keyof TestSets>> = {
  PASSED: 'passed',
  'UP-TO-DATE': 'passed',
  'FROM-CACHE': 'passed',
  FAILED: 'failed',
  SKIPPED: 'skipped',
  'NO-SOURCE': 'skipped',
};
const gradleCached: Shape = eachStripped((line, sets) => {
  const { name, word } = gradleLine(line) ?? { name: '', word: '' };
  const status = Object.hasOwn(GRADLE_WORDS, word) ? GRADLE_WORDS[word] : undefined;
  if (status !== undefined) note(sets, status, name);
});

const firstWord = (text: string): string => /^\S*/.exec(text)![0];

const GO_MARKS = new Map<string, keyof TestSets>([
  ['--- PASS: ', 'passed'],
  ['--- FAIL: ', 'failed'],
  ['--- SKIP: ', 'skipped'],
]);
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
const go = goWith((name) => name);
const goTopLevel = goWith((name) => (name.includes('/') ? name.slice(0, name.lastIndexOf('/')) : name));

/** `test a::b ... ok`. */
const cargo: Shape = eachStripped((line, sets) => {
  const found = /^test (\S+) ... (ok|FAILED|ignored)/.exec(line);
  if (found === null) return;
  const [, name, word] = found;
  (word === 'ok' ? sets.passed : word === 'FAILED' ? sets.failed : sets.skipped).add(name!);
});

/** `PASS: tests/a`. */
const automake: Shape = eachStripped((line, sets) => {
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
const googletest: Shape = eachStripped((line, sets) => {
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

/** The name of a test that passed or failed, where `rest` is what stands behind its number. */
function ctestNames(rest: string, sets: TestSets, passed: number, failed: string | undefined): void {
  const good = passed < 0 ? undefined : beforeDots(rest.slice(0, passed).trimEnd());
  if (good !== undefined) sets.passed.add(good);
  const bad = failed === undefined ? undefined : beforeDots(failed);
  if (bad !== undefined) sets.failed.add(bad);
}

/** `1/2 Test #1: name .....   Passed    0.01 sec`. */
const ctest: Shape = eachStripped((line, sets) => {
  const head = CTEST.exec(line);
  if (head === null) return;
  const rest = line.slice(head[0].length);
  const failed = rest.endsWith('*Failed')
    ? rest
        .slice(0, -'Failed'.length)
        .replace(/\*{1,20}$/, '')
        .trimEnd()
    : undefined;
  ctestNames(rest, sets, rest.lastIndexOf('Passed'), failed);
});

/** CTest as Catch2's rows have it: in lower case, with the checks of CMake itself, and failures with their time. */
const ctestLower: Shape = eachStripped((given, sets) => {
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
  const failed = rest.lastIndexOf('***failed ');
  ctestNames(rest, sets, rest.lastIndexOf('  passed '), failed < 0 ? undefined : rest.slice(0, failed));
});

// The shape of logs of each repository of Multi-SWE-bench. Any other repository is not gradable, whatever its log says.

const SHAPES: readonly (readonly [shape: Shape, repos: string])[] = [
  [maven, 'apache/dubbo fasterxml/jackson-core fasterxml/jackson-databind fasterxml/jackson-dataformat-xml'],
  [mavenPlain, 'alibaba/fastjson2'],
  [mavenRunning, 'google/gson'],
  [gradle, 'elastic/logstash mockito/mockito'],
  [gradleCached, 'googlecontainertools/jib'],
  [go, 'cli/cli'],
  [goTopLevel, 'grpc/grpc-go zeromicro/go-zero'],
  [
    cargo,
    'burntsushi/ripgrep clap-rs/clap nushell/nushell rayon-rs/rayon serde-rs/serde sharkdp/bat sharkdp/fd tokio-rs/bytes tokio-rs/tokio tokio-rs/tracing',
  ],
  [automake, 'facebook/zstd jqlang/jq'],
  [googletest, 'ponylang/ponyc yhirose/cpp-httplib'],
  [ctest, 'fmtlib/fmt nlohmann/json simdjson/simdjson'],
  [ctestLower, 'catchorg/catch2'],
  [jest, 'anuraghazra/github-readme-stats iamkun/dayjs'],
  [jestAnyBracket, 'darkreader/darkreader'],
  [mocha, 'axios/axios'],
  [vitest, 'sveltejs/svelte vuejs/core'],
  [insomnia, 'kong/insomnia'],
];

const BY_REPO = new Map(SHAPES.flatMap(([shape, repos]) => repos.split(' ').map((repo) => [repo, shape])));

/** Only the end of a make run says how these went, so their logs have another shape. */
const ZSTD_BY_MAKE = [
  [1230, 1748],
  [1831, 2703],
] as const;
const EXPRESS_BY_MOCHA: ReadonlySet<number> = new Set([4212, 4852, 5555, 5841]);

export function shapeOf(repo: string, number: number): Shape | undefined {
  const name = repo.toLowerCase();
  if (name === 'facebook/zstd' && ZSTD_BY_MAKE.some(([from, to]) => number >= from && number <= to))
    return undefined;
  if (name === 'expressjs/express') return EXPRESS_BY_MOCHA.has(number) ? mocha : undefined;
  return BY_REPO.get(name);
}
