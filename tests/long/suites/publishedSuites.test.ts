// Verdicts and logs that suites published, in whole clones of their repositories, recomputed by our rules. Give the folder of the clones:
//   SWEBATCH_SUITES=../clones npm run test:long -- publishedSuites
// with scaleapi/SWE-bench_Pro-os@ca10a60a, kimjune01/swebench-pro-audit@354b3c02, multi-swe-bench/experiments@89888f16 (as
// `multi-swe-bench-experiments`), SWE-rebench/SWE-rebench-V2@c71902a8, SWE-bench-Live/RepoLaunch-trajectory-archive@e068854f and SWE-bench/SWE-smith@cf2e649d.

import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import PQueue from 'p-queue';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDockerFactory, type DockerFactory } from '../../../src/environment/docker/dockerFactory.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { verdictInRunLog } from '../../../src/formats/harness/instanceReport.ts';
import { readLeaderboardResults } from '../../../src/formats/leaderboard/results.ts';
import { readVerdictMap } from '../../../src/formats/pro/pro.ts';
import { resolutionOf } from '../../../src/grading/grade.ts';
import {
  GRADING_DOCKER_OPTIONS,
  gradingConfigSchema,
  gradingEnvironment,
} from '../../../src/grading/gradingConfig.ts';
import { doubtedScores } from '../../../src/report/measure/summary.ts';
import { runRowParser } from '../../../src/suites/live/live.ts';
import { entryScript } from '../../../src/suites/pro/pro.ts';
import { REBENCH_IMAGE, rebenchShape, rebenchStatuses } from '../../../src/suites/rebenchV2/rebenchV2.ts';
import { SMITH_IMAGE, smithVerdict } from '../../../src/suites/smith/smith.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { derivedImage, withImage } from '../../support/dockerEnvironment.ts';
import { comparedTo, liveOutputs } from '../../support/kinds/publishedLive.ts';
import { smithParser } from '../../support/kinds/smithParser.ts';
import { normaliseRow, planGrading } from '../../support/suites.ts';

const clones = process.env.SWEBATCH_SUITES ?? '';
const at = (...parts: string[]): string => join(clones, ...parts);
const have = (name: string): boolean => clones !== '' && existsSync(at(name));
const available = await dockerAvailable();
const config = gradingConfigSchema.parse({ timeout: 300 });
const owner = currentOwner(`published-${process.pid}`, '1');

let factory: DockerFactory;
beforeAll(() => {
  if (available)
    factory = createDockerFactory(
      { ...gradingEnvironment(config), pull: 'never' },
      { ...GRADING_DOCKER_OPTIONS, capAdd: config.cap_add },
    );
});
afterAll(() => factory?.close());

/** A row of Pro from its folder of scripts. */
function proRow(id: string, more: Record<string, unknown> = {}) {
  const file = (name: string) => readFileSync(at('SWE-bench_Pro-os/run_scripts', id, name), 'utf8');
  const info = file('instance_info.txt');
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(info)?.[1] ?? '';
  return normaliseRow({
    ...{ instance_id: id, repo: field('Repository'), base_commit: field('Base Commit') },
    ...{ problem_statement: 'x', before_repo_set_cmd: 'true', dockerhub_tag: 't' },
    ...{ fail_to_pass: field('FAIL_TO_PASS'), pass_to_pass: field('PASS_TO_PASS') },
    selected_test_files_to_run: field('Test Files'),
    ...{ run_script: file('run_script.sh'), parser: file('parser.py') },
    ...more,
  });
}

describe.skipIf(!have('SWE-bench_Pro-os'))('SWE-bench Pro (needs SWEBATCH_SUITES)', () => {
  test('every folder of scripts has a plan of grading, and every published verdict is read', () => {
    const ids = readdirSync(at('SWE-bench_Pro-os/run_scripts')).filter((id) => id.startsWith('instance_'));
    const planned = ids.filter((id) => {
      const read = proRow(id);
      return read.ok && planGrading(read.instance).ok;
    });
    const verdicts = globSync(at('SWE-bench_Pro-os/traj/*/eval_results.json')).flatMap((path) => {
      const read = readVerdictMap(readFileSync(path));
      if (!read.ok) throw new Error(`${path}: ${read.message}`);
      return [...read.value];
    });
    console.log(`Pro: ${planned.length} of ${ids.length} planned, ${verdicts.length} verdicts read`);
    expect(planned).toHaveLength(ids.length);
    expect(verdicts).toHaveLength(6606);
  });

  test('every model has its labelled scores without the instances that others found to be wrong', () => {
    const scores = globSync(at('SWE-bench_Pro-os/traj/*/eval_results.json'))
      .toSorted()
      .map((path) => {
        const read = readVerdictMap(readFileSync(path));
        if (!read.ok) throw new Error(`${path}: ${read.message}`);
        const trials = [...read.value].map(([instanceId, resolved]) => ({
          instanceId,
          resolved,
          valid: true,
        }));
        const told = doubtedScores(trials, 1);
        expect(told.map(({ label }) => label.split(' (')[0])).toEqual([
          'whose gold patch fails its own grader',
          'whose text does not determine what their tests check',
          'of either list',
        ]);
        const won = trials.filter(({ resolved }) => resolved).length;
        return [`${won}/${trials.length}`, ...told.map(({ resolvedWithout: { x, n } }) => `${x}/${n}`)].join(
          ' ',
        );
      });
    expect(scores).toEqual([
      '319/730 319/727 301/621 301/618',
      '240/562 240/561 222/485 222/484',
      '206/891 206/888 194/792 194/789',
      '166/663 166/660 154/564 154/561',
      '105/955 105/952 99/848 99/845',
      '36/619 36/617 34/522 34/520',
      '265/729 265/726 250/620 250/617',
      '118/728 118/725 113/619 113/616',
      '202/729 202/726 191/620 191/617',
    ]);
  });

  test.skipIf(!have('swebench-pro-audit') || !available)(
    'the one case that is published whole: the same script, the same tests passed by its parser in a container, the same verdict',
    async () => {
      const id =
        'instance_qutebrowser__qutebrowser-e34dfc68647d087ca3175d9ad3f023c30d8c9746-v363c8a7e5ccdf6968fc7ab84a2053ac78036691d';
      const whole = (name: string) =>
        readFileSync(at('swebench-pro-audit/data/craft_autopsy/grade', id, 'workspace', name), 'utf8');
      const dockerfile = (kind: string) =>
        readFileSync(at('SWE-bench_Pro-os/dockerfiles', kind, id, 'Dockerfile'), 'utf8');
      const before =
        'git checkout e34dfc68647d087ca3175d9ad3f023c30d8c9746 -- tests/unit/utils/test_urlutils.py';
      const script = entryScript({
        baseCommit: 'c984983bc4cf6f9148e16ea17369597f67774ff9',
        beforeRepoSetCmd: before,
        testFiles: ['tests/unit/utils/test_urlutils.py'],
        dockerfiles: [dockerfile('base_dockerfile'), dockerfile('instance_dockerfile')],
      });
      expect(script).toBe(whole('entryscript.sh'));

      // The repository and its packages are not here: its run_script.sh is one that prints what the published one printed.
      const image = await derivedImage(`rm -rf /app; cp -r /testbed /app 2>/dev/null || git init -q /app
command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python`);
      const said = Buffer.from(whole('stdout.log')).toString('base64');
      const read = proRow(id, {
        run_script: `base64 -d <<'END'\n${said}\nEND\n`,
        parser: whole('parser.py'),
      });
      if (!read.ok) throw new Error(read.messages.join());
      const planned = planGrading({ ...read.instance, image });
      if (!planned.ok) throw new Error(planned.reason);
      const graded = await planned.plan.grade({ patch: whole('patch.diff'), factory, config, owner });
      const published = JSON.parse(whole('output.json')) as { tests: { name: string; status: string }[] };
      const passed = new Set(
        published.tests.filter(({ status }) => status === 'PASSED').map(({ name }) => name),
      );
      const wanted = [...read.instance.FAIL_TO_PASS, ...read.instance.PASS_TO_PASS];
      const tests = graded.report?.[id]?.tests_status;
      expect([...tests!.FAIL_TO_PASS.success, ...tests!.PASS_TO_PASS.success].toSorted()).toEqual(
        wanted.filter((name) => passed.has(name)).toSorted(),
      );
      const verdicts = readVerdictMap(
        readFileSync(at('swebench-pro-audit/data/craft_autopsy/grade/eval_results.json')),
      );
      expect(verdicts.ok && new Map(verdicts.value).get(id)).toBe(graded.resolved);
      console.log(`Pro, whole case: ${graded.outcome}, ${wanted.length} tests, ${passed.size} passed`);
    },
  );
});

describe.skipIf(!have('multi-swe-bench-experiments'))('Multi-SWE-bench (needs SWEBATCH_SUITES)', () => {
  test('the statuses at the end of every run_instance.log give the published verdict; no log holds an output of tests', () => {
    const counts = { agree: 0, resolved: 0, incomplete: 0, withOutput: 0, unread: 0 };
    for (const path of globSync(
      at('multi-swe-bench-experiments/evaluation/java/verified/*/logs/*/run_instance.log'),
    )) {
      const id = path.split('/').at(-2)!;
      const text = readFileSync(path);
      const published = readLeaderboardResults(readFileSync(join(path, '../../../results/results.json')));
      if (!published.ok) throw new Error(published.message);
      const verdict = verdictInRunLog(text, id);
      if (/Tests run:|BUILD (?:SUCCESS|FAILURE)|^> Task/m.test(text.toString())) counts.withOutput++;
      const won = published.value.resolved.includes(id);
      if (!verdict?.tests_status) {
        counts.unread++;
        expect(won, path).toBe(false);
        continue;
      }
      const resolved = resolutionOf(verdict.tests_status) === 'RESOLVED_FULL';
      expect(resolved, path).toBe(verdict.resolved);
      if (resolved) counts.resolved++;
      // results.json of one model is that of a later run of one instance: it calls 90 others incomplete, with their logs beside it.
      if ((published.value.incomplete_ids as string[]).includes(id)) counts.incomplete++;
      else expect(resolved, path).toBe(won);
      counts.agree++;
    }
    console.log('Multi-SWE-bench:', JSON.stringify(counts));
    expect(counts).toMatchObject({ agree: 398, unread: 2, withOutput: 0 });
  });
});

describe.skipIf(!have('RepoLaunch-trajectory-archive') || !available)(
  'SWE-bench-Live (needs SWEBATCH_SUITES)',
  () => {
    test("the row's own parser, run by us without network, gives the published statuses", async () => {
      const image = await derivedImage('true');
      const queue = new PQueue({ concurrency: 2 });
      const counts = { equal: 0, part: 0, differs: 0, none: 0, failed: 0 };
      const names = { agree: 0, unknown: 0, other: 0 };
      const best = ['equal', 'part', 'differs', 'none', 'failed'] as const;
      const one = async (row: ReturnType<typeof liveOutputs>[number]) => {
        const seen: (keyof typeof counts)[] = [];
        for (const output of row.outputs) {
          const where = { instance_id: 'live', image };
          const parsed = await runRowParser(row.parser, output, where, {
            ...{ patch: null, factory, config, owner },
          });
          const statuses = parsed instanceof Map ? parsed : undefined;
          seen.push(statuses ? comparedTo(row.published, statuses) : 'failed');
          for (const [name, status] of statuses ?? []) {
            const told = row.published[name];
            names[told === status ? 'agree' : told === undefined ? 'unknown' : 'other']++;
          }
        }
        counts[best.find((word) => seen.includes(word))!]++;
      };
      await Promise.all(
        liveOutputs(at('RepoLaunch-trajectory-archive')).map((row) => queue.add(() => one(row))),
      );
      console.log('Live:', JSON.stringify({ counts, names }));
      expect(counts.equal).toBeGreaterThan(10);
      expect(names.other / names.agree).toBeLessThan(0.01);
    }, 1_800_000);
  },
);

describe.skipIf(!have('SWE-smith') || !available)('SWE-smith (needs SWEBATCH_SUITES)', () => {
  test('four published logs, read by the package in its container, have the published verdicts and lists of tests', async () => {
    const made = await smithParser();
    if ('why' in made) throw new Error(made.why);
    const request = { factory: withImage(factory, SMITH_IMAGE, made.image), owner };
    const folders = globSync(at('SWE-smith/tests/test_logs/run_evaluation/*/'));
    for (const folder of folders) {
      const published = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
      const listed = (lists: Record<string, string[]>) => [...lists.success!, ...lists.failure!];
      const id = basename(folder);
      const row = normaliseRow({
        ...{ instance_id: id, repo: `swesmith/${id.slice(0, id.lastIndexOf('.'))}`, problem_statement: 'x' },
        ...{ patch: 'x', FAIL_TO_PASS: listed(published.tests_status.FAIL_TO_PASS) },
        PASS_TO_PASS: listed(published.tests_status.PASS_TO_PASS),
      });
      if (!row.ok) throw new Error(row.messages.join());
      const log = readFileSync(join(folder, 'test_output.txt'), 'utf8');
      const { resolved, tests_status: status } = published;
      expect(await smithVerdict(row.instance, log, request), id).toMatchObject({
        ok: true,
        verdict: { resolved, status },
      });
    }
    expect(folders).toHaveLength(4);
  }, 1_800_000);
});

/** A line or two of what many of the runners print. */
const OTHER_LOGS = [
  ...['Running ExUnit with seed: 0', 'CalcTest [test/calc_test.exs]', '  * test adds é (1.2ms) [L#5]'],
  ...[
    '  * test fails (0.1ms) [L#9]',
    '1/2 Test #1: unit.add ....   Passed    0.01 sec',
    '2/2 Test #2: b ...***Failed 1 sec',
  ],
  ...['[  OK  ] adds two', '[FAIL] adds three', '[SKIP] later', 'PASSED  t.ml::a   1s', 'FAILED b  x'],
  ...["Test Case 'Calc.testAdd' passed (0.1 seconds)", "Test Case 'Calc.testB' failed (0.2 seconds)"],
  ...[
    '  Passed Calc.Tests.Add [1 ms]',
    '  Failed Calc.Tests.Sub [2 ms]',
    '[xUnit.net 00:00:01.0]     Calc.X [FAIL]',
  ],
  ...['00:01 +1: calc adds', '00:02 +1 -1: calc fails [E]', '00:03 +2 -1: Some tests failed.'],
  ...[
    '[info] CalcSpec:',
    '[info] - adds (5 milliseconds)',
    '[info] - fails *** FAILED ***',
    '[info]   + child 1ms',
  ],
  ...[
    '  ✓ adds (5 ms)',
    '  ✗ fails',
    '  √ adds',
    '  - skipped',
    '  1) fails again',
    'ok 1 - adds',
    'not ok 2 - b',
  ],
  ...['Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in a.b.CTest'],
  ...['[INFO] Running a.b.CTest', '[ERROR] a.b.CTest.fails -- Time elapsed: 0.1 s <<< FAILURE!'],
  ...[
    'Test Summary: | Pass  Fail  Total',
    'calc          |    1     1      2',
    'Testing calc.core',
    'lein test calc.core-test',
  ],
  ...[
    'calc',
    '  adds:  OK (0.01s)',
    '  fails: FAIL',
    '    expected 1',
    'Success || a/b_spec.lua || adds',
    'Fail || b',
  ],
  ...[
    '[gw0] [ 50%] PASSED tests/a.py::b in 1s',
    'tests/a.py::c FAILED [100%] in 0.2s',
    'test_add (CalcTest) ... ok',
  ],
  ...['<?xml version="1.0"?><testsuites><testsuite><testcase classname="c" name="n"/>'],
  ...[
    '<testcase classname="c" name="f"><failure/></testcase></testsuite></testsuites>',
    'CalcTest > adds() PASSED',
  ],
  ...[
    '✔ | F W  S  OK | Context',
    '✔ |          3 | calc',
    '✖ | 1        2 | other',
    '# Running:',
    'CalcTest#test_a = 0.01 s = .',
  ],
];

describe.skipIf(!have('SWE-rebench-V2') || !available)('SWE-rebench V2 (needs SWEBATCH_SUITES)', () => {
  test('every name of its log parsers is known, and what its own Python reads in a container is what it reads beside us', async () => {
    const lib = at('SWE-rebench-V2/lib/agent');
    const files = ['log_parsers.py', 'swe_constants.py'].map(
      (name) =>
        `echo ${gzipSync(readFileSync(join(lib, name))).toString('base64')} | base64 -d | gunzip >/opt/swe-rebench-v2/lib/agent/${name}`,
    );
    const image = await derivedImage(['mkdir -p /opt/swe-rebench-v2/lib/agent', ...files].join('\n'));
    const log = OTHER_LOGS.join('\n');
    const beside = spawnSync(
      'python3',
      [
        '-c',
        `import json, sys
from lib.agent import log_parsers as l
text = sys.stdin.read()
print(json.dumps({n: getattr(l, n)(text) for n in dir(l) if n.startswith('parse_')}))`,
      ],
      { cwd: at('SWE-rebench-V2'), input: log, encoding: 'utf8', env: { ...process.env, PYTHONUTF8: '1' } },
    );
    const expected = JSON.parse(beside.stdout) as Record<string, Record<string, string>>;
    let [seen, read] = [0, 0];
    for (const [shape, statuses] of Object.entries(expected)) {
      if (rebenchShape(undefined, shape)) continue;
      const request = { factory: withImage(factory, REBENCH_IMAGE, image), owner };
      const found = await rebenchStatuses(shape, log, 'a__b-1', request);
      expect(found instanceof Map && Object.fromEntries(found), shape).toEqual(statuses);
      seen++;
      if (Object.keys(statuses).length > 0) read++;
    }
    console.log(`V2: ${seen} names, of which ${read} read something in the log`);
    expect(Object.keys(expected)).toHaveLength(96);
    expect(seen).toBe(51);
  }, 1_800_000);
});
