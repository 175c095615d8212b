// The flow of one evaluation against an environment made of answers: what is sent, what is closed, what never throws.

import { describe, expect, test } from 'vitest';
import { completeFactory, type PlainEnvironment } from '../../../src/environment/capabilities.ts';
import {
  type CommandResult,
  EnvironmentError,
  type EnvironmentFactory,
} from '../../../src/environment/environment.ts';
import { runLogText } from '../../../src/formats/harness/logFolders.ts';
import { gradingConfigSchema, gradingEnvironment, limitsOf } from '../../../src/grading/gradingConfig.ts';
import { resolveGradeSpec } from '../../../src/grading/specs/spec.ts';
import { type EvaluationRequest, evaluatePrediction } from '../../../src/suites/sweBench/sweBench.ts';
import { normaliseRow } from '../../support/suites.ts';

const PASSED = '>>>>> Start Test Output\nok 1 a\n>>>>> End Test Output\n>>>>> Test Exit Code: 0\n';
const answer = (more: Partial<CommandResult> = {}): CommandResult => ({
  output: '',
  raw: new Uint8Array(),
  exitCode: 0,
  timedOut: false,
  totalBytes: 0,
  omittedBytes: 0,
  replacedBytes: 0,
  durationMs: 5,
  oomKilled: false,
  transport: 'exec',
  exceptionInfo: '',
  ...more,
}); // prettier-ignore

function stage(answers: (command: string) => Partial<CommandResult> | Error) {
  const commands: string[] = [];
  const files = new Map<string, string>();
  let started = 0;
  let closed = 0;
  const environment: PlainEnvironment = {
    info: { kind: 'fake', transport: 'exec', history: 'skipped', notes: [], imageDigest: 'sha256:1' },
    execute: async (command) => {
      commands.push(command);
      if (command.startsWith('head -c')) return answer({ output: files.get('/eval.sh') ?? '' });
      const given = answers(command);
      if (given instanceof Error) throw given;
      return answer(given);
    },
    templateVars: () => ({}),
    capturePatch: () => Promise.reject(new Error('a grader never captures')),
    putFile: async (path, content) => void files.set(path, String(content)),
    getFile: async () => new Uint8Array(),
    close: async () => void closed++,
  };
  const factory = completeFactory({
    kind: 'fake',
    start: async () => {
      started++;
      return environment;
    },
    close: async () => undefined,
  });
  return { factory, commands, files, started: () => started, closed: () => closed };
}

function request(
  factory: EnvironmentFactory,
  more: Partial<EvaluationRequest> & { row?: Record<string, unknown> } = {},
): EvaluationRequest {
  const { row, ...rest } = more;
  const read = normaliseRow({
    instance_id: 'o__r-1',
    base_commit: 'c',
    problem_statement: '',
    image: 'i:1',
    log_parser: 'tap',
    eval_script:
      "#!/bin/bash\nset -uxo pipefail\n: '>>>>> Start Test Output'\nrun\n: '>>>>> End Test Output'\n",
    FAIL_TO_PASS: ['a'],
    PASS_TO_PASS: [],
    ...row,
  }); // prettier-ignore
  if (!read.ok) throw new Error(read.messages.join());
  const spec = resolveGradeSpec(read.instance);
  if (!spec.ok) throw new Error(spec.reason);
  return {
    spec: spec.spec,
    patch: 'diff --git a/x b/x\n',
    factory,
    config: gradingConfigSchema.parse({ timeout: 30 }),
    owner: { run: 'r', attempt: '1', pid: 1, pidStart: '1', bootId: 'b', host: 'h' },
    ...rest,
  };
}

const tests = (command: string) => command.includes('/bin/bash /eval.sh');

describe('a prediction that works', () => {
  test('patch and script go in as files, the tests run in one stream under a deadline, all is closed', async () => {
    const { factory, commands, files, closed } = stage((command) =>
      tests(command) ? { output: PASSED } : {},
    );
    const phases: string[] = [];
    const result = await evaluatePrediction(request(factory, { onPhase: (phase) => phases.push(phase) }));
    expect(result).toMatchObject({
      outcome: 'resolved',
      resolved: true,
      resolvedStrict: true,
      imageDigest: 'sha256:1',
      exitCode: 0,
    });
    expect(files.get('/tmp/patch.diff')).toBe('diff --git a/x b/x\n');
    expect(files.get('/eval.sh')).toContain('SWEBENCH_TEST_EXIT_CODE=$?');
    expect(commands.find(tests)).toMatch(/timeout -k 5 30 \/bin\/bash \/eval\.sh 2>&1/);
    expect(phases).toEqual(['apply', 'test', 'grade']);
    expect(closed()).toBe(1);
    expect(runLogText(result.runLog)).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - INFO - Creating container for o__r-1\.\.\.\n/,
    );
    const milestones = [
      'Container for o__r-1 created: fake',
      'Container for o__r-1 started: fake',
      'Intermediate patch for o__r-1 written',
      '>>>>> Applied Patch:',
      'Git diff before:',
      'Eval script for o__r-1 written',
      'Test runtime: 0.01 seconds',
      'Git diff after:',
      'Grading answer for o__r-1',
      'report: {"o__r-1":{"patch_is_None":false',
      'Result for o__r-1: resolved: True\n',
      'Attempting to stop container fake',
    ];
    const text = runLogText(result.runLog);
    expect(milestones.map((line) => text.indexOf(line)).toSorted((a, b) => a - b)).toEqual(
      milestones.map((line) => text.indexOf(line)),
    );
    expect(milestones.filter((line) => !text.includes(line))).toEqual([]);
  });
  test('rungs that fail are followed by a clean-up and recorded', async () => {
    const { factory, commands } = stage((command) =>
      tests(command) ? { output: PASSED } : { exitCode: command.startsWith('git apply') ? 1 : 0 },
    );
    const result = await evaluatePrediction(request(factory));
    expect(result.applyMethod).toBe('patch --batch --forward --fuzz=5 -p1 -i');
    expect(commands.slice(0, 7)).toEqual([
      'git apply --verbose /tmp/patch.diff',
      'git checkout -- . ; git clean -fd',
      'git apply --verbose --3way /tmp/patch.diff',
      'git checkout -- . ; git clean -fd',
      'git apply --verbose --reject /tmp/patch.diff',
      'git checkout -- . ; git clean -fd',
      'patch --batch --forward --fuzz=5 -p1 -i /tmp/patch.diff',
    ]);
  });
  test("a row of SWE-Gym: its harness's two rungs and its script, and the whole log is read", async () => {
    const output = 'Applied patch t.py cleanly.\nPASSED a\n= 1 passed in 0.01s =\n';
    const { factory, commands, files } = stage((command) =>
      tests(command) ? { output } : { exitCode: command.startsWith('git apply') ? 1 : 0 },
    );
    const row = { ...{ repo: 'getmoto/moto', version: '5.0', eval_script: '', log_parser: '' } };
    const test_patch = 'diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n';
    const result = await evaluatePrediction(request(factory, { row: { ...row, test_patch } }));
    expect(commands.slice(0, 2)).toEqual([
      'git apply --allow-empty -v /tmp/patch.diff',
      'patch --batch --fuzz=5 -p1 -i /tmp/patch.diff',
    ]);
    expect(files.get('/eval.sh')).toMatch(/^#!\/bin\/bash\nset -xo pipefail\n(?:.*\n)*pytest -n0 -rA t.py\n/);
    expect(result).toMatchObject({
      outcome: 'resolved',
      harness: 'v4.1',
      resolvedStrict: true,
      suspicion: [],
    });
  });
  test('binary assets are laid beside the tree and copied in just before the tests', async () => {
    const { factory, files } = stage((command) => (tests(command) ? { output: PASSED } : {}));
    const image_assets = {
      test_patch: [
        { path: "a/it's.png", url: 'https://x.example/1' },
        { path: 'gone.png', url: 'https://x.example/2' },
      ],
    };
    const result = await evaluatePrediction(
      request(factory, {
        row: { image_assets },
        fetchAsset: async (url) => {
          if (url.endsWith('2')) throw new Error('404');
          return new TextEncoder().encode('PNG');
        },
      }),
    );
    expect(result.outcome).toBe('resolved');
    expect([...files.keys()]).toContain("/image_assets/a__it's.png");
    const script = files.get('/eval.sh')!;
    expect(script.indexOf('cp ')).toBeLessThan(script.indexOf('Start Test Output'));
    expect(script).toContain(`cp '/image_assets/a__it'\\''s.png' 'a/it'\\''s.png'`);
    expect(runLogText(result.runLog)).toContain('WARNING - asset gone.png is missing: 404');
  });
});

test('tests that rewrite the script around them are doubted: bash reads it as it goes', async () => {
  const { factory, files } = stage((command) => {
    if (tests(command)) files.set('/eval.sh', 'echo PASSED');
    return tests(command) ? { output: PASSED } : {};
  });
  const result = await evaluatePrediction(request(factory));
  expect(result).toMatchObject({ resolved: true, resolvedStrict: false });
  expect(result.suspicion.map(({ rule }) => rule)).toEqual(['script_changed']);
});

test.each([
  ['killed', { output: PASSED, exitCode: 137 }],
  ['ended by a signal that it could have caught', { output: PASSED, exitCode: 143 }],
  ['gone without its last line', { output: PASSED.replace(/.*Exit Code.*\n/, '') }],
])('a script that is %s while it runs is doubted', async (_how, given) => {
  const { factory } = stage((command) => (tests(command) ? given : {}));
  const result = await evaluatePrediction(request(factory));
  expect(result).toMatchObject({ resolved: true, resolvedStrict: false });
  expect(result.suspicion.map(({ rule }) => rule)).toEqual(['script_cut_off']);
});

test('a limit that the tests met is told of beside the verdict', async () => {
  const exceptionInfo = 'process limit 8192 reached (fork: Resource temporarily unavailable).';
  const { factory } = stage((command) => (tests(command) ? { output: PASSED, exceptionInfo } : {}));
  const result = await evaluatePrediction(request(factory));
  expect(result).toMatchObject({ resolved: true, resolvedStrict: true });
  expect(result.suspicion).toMatchObject([{ rule: 'limit_met', evidence: 'process limit 8192 reached' }]);
});

describe('trouble becomes a result', () => {
  test.each([
    [new EnvironmentError('image_missing', 'no such image'), 'image_missing'],
    [new EnvironmentError('disk_full', 'no space'), 'disk_full'],
    [new Error('surprise'), 'internal_error'],
  ])('a start that fails with %s', async (error, infraReason) => {
    const factory = completeFactory({
      kind: 'x',
      start: () => Promise.reject(error),
      close: async () => undefined,
    });
    const result = await evaluatePrediction(request(factory));
    expect(result).toMatchObject({ outcome: 'infra', infraReason, resolved: null, report: null });
    expect(result.errorMessage).toMatch(/^o__r-1: /);
  });
  test('a container that dies while the tests run, by memory or otherwise', async () => {
    for (const [sub, infraReason] of [
      ['oom', 'oom'],
      ['killed', 'died'],
    ] as const) {
      const { factory, closed } = stage((command) =>
        tests(command) ? new EnvironmentError('died', 'gone', { sub }) : {},
      );
      expect(await evaluatePrediction(request(factory))).toMatchObject({ outcome: 'infra', infraReason });
      expect(closed()).toBe(1);
    }
  });
  test.each<[what: string, answers: () => Partial<CommandResult> | Error, alone: object]>([
    [
      'ends its container by memory',
      () => new EnvironmentError('died', 'gone', { sub: 'oom', fromWithin: true }),
      { outcome: 'invalid', infraReason: 'oom' },
    ],
    [
      'tells a forged end',
      () => new EnvironmentError('died', 'forged', { sub: 'forged', fromWithin: true }),
      { outcome: 'invalid' },
    ],
  ])('what %s counts against the patch when it does so again alone', async (_what, answers, expected) => {
    const { factory } = stage((command) => (tests(command) ? answers() : {}));
    expect(await evaluatePrediction(request(factory))).toMatchObject({ outcome: 'infra', repeatAlone: true });
    const again = await evaluatePrediction(request(factory, { alone: true }));
    expect(again).toMatchObject({ resolved: false, resolvedStrict: false, ...expected });
    expect(again.suspicion.map(({ rule }) => rule).join()).toMatch(/ended_environment|limit_met/);
  });
  test.each<[what: string, answers: Partial<CommandResult>]>([
    ['its tests', { output: PASSED.replaceAll('ok 1', 'not ok 1'), exceptionInfo: 'killed' }],
    ['its log', { output: 'Killed', exitCode: 137 }],
    ['its time', { output: PASSED, timedOut: true, exitCode: -1 }],
  ])(
    'what loses %s to the memory limit has no verdict, also alone: the limit may be too low',
    async (_what, answers) => {
      const { factory } = stage((command) => (tests(command) ? { ...answers, oomKilled: true } : {}));
      for (const alone of [false, true]) {
        const result = await evaluatePrediction(request(factory, { alone }));
        expect(result).toMatchObject({ outcome: 'infra', infraReason: 'oom' });
        expect(result.repeatAlone ?? false).toBe(false);
      }
    },
  );
  test('a container that something else ended stays infra, also alone', async () => {
    for (const sub of ['oom', 'killed'] as const) {
      const { factory } = stage((command) =>
        tests(command) ? new EnvironmentError('died', 'gone', { sub }) : {},
      );
      expect(await evaluatePrediction(request(factory, { alone: true }))).toMatchObject({
        outcome: 'infra',
        resolved: null,
      });
    }
  });
  test('a deadline, whoever kept it; exit code 124 of the tests themselves is none', async () => {
    const late = stage((command) => (tests(command) ? { output: PASSED, timedOut: true, exitCode: -1 } : {}));
    expect(await evaluatePrediction(request(late.factory))).toMatchObject({
      outcome: 'timeout',
      repeatAlone: true,
    });
    const inside = stage((command) =>
      tests(command) ? { output: PASSED, exitCode: 124, durationMs: 30_001 } : {},
    );
    expect(await evaluatePrediction(request(inside.factory))).toMatchObject({ outcome: 'timeout' });
    const own = stage((command) => (tests(command) ? { output: PASSED, exitCode: 124, durationMs: 10 } : {}));
    expect(await evaluatePrediction(request(own.factory))).toMatchObject({ outcome: 'resolved' });
  });
  test('a log whose middle is missing resolves by the harness and not strictly', async () => {
    const { factory } = stage((command) => (tests(command) ? { output: PASSED, omittedBytes: 7 } : {}));
    expect(await evaluatePrediction(request(factory))).toMatchObject({
      resolved: true,
      resolvedStrict: false,
    });
  });
  test('empty predictions start nothing', async () => {
    for (const patch of ['', null]) {
      const { factory, started } = stage(() => ({}));
      expect(await evaluatePrediction(request(factory, { patch }))).toMatchObject({
        outcome: 'empty_patch',
        resolved: null,
      });
      expect(started()).toBe(0);
    }
  });
  test('a patch without a final line end that does not apply says what it may be', async () => {
    const { factory } = stage(() => ({ exitCode: 1, output: 'corrupt patch' }));
    const result = await evaluatePrediction(request(factory, { patch: 'diff --git' }));
    expect(result.outcome).toBe('apply_failed');
    expect(result.errorMessage).toMatch(/no line end at its end.*corrupt patch/);
  });
  test('only an interruption is thrown, and the environment is closed', async () => {
    const stop = new AbortController();
    const { factory, closed } = stage((command) => {
      if (tests(command)) stop.abort(new Error('stop'));
      return new EnvironmentError('died', 'closed under it');
    });
    stop.abort(new Error('stop'));
    await expect(evaluatePrediction(request(factory, { signal: stop.signal }))).rejects.toThrow('stop');
    expect(closed()).toBe(0);
  });
});

test("the grading environment is the harness's: a network, root, limits that only a bomb meets, nothing of ours inside", () => {
  const plain = gradingEnvironment(gradingConfigSchema.parse({ memory: '0' }));
  expect(plain).toMatchObject({
    network: 'bridge',
    memory: '0',
    pids_limit: 8192,
    cpus: 0,
    disk: '0',
    cwd: '/testbed',
    user: 'root',
    env: {},
    seal_history: false,
  });
  const cut = gradingEnvironment(gradingConfigSchema.parse({ network: 'none', memory: '2g' }), {
    pull: 'never',
  });
  expect(cut).toMatchObject({ network: 'none', memory: '2g', pull: 'never' });
  const limited = gradingEnvironment(gradingConfigSchema.parse({ pids_limit: 100, cpus: 1.5 }));
  expect(limited).toMatchObject({ pids_limit: 100, cpus: 1.5 });
});

test('the memory of a grading container is 16 GiB, or three quarters of a smaller machine; a person may say otherwise', () => {
  const GiB = 2 ** 30;
  const limits = (memory: string | undefined, machine: number) =>
    limitsOf(gradingConfigSchema.parse({ memory }), machine);
  expect(limits(undefined, 64 * GiB)).toEqual({ memory_bytes: 16 * GiB, pids: 8192, cpus: 0 });
  expect(limits(undefined, 8 * GiB).memory_bytes).toBe(6 * GiB);
  expect(limits('0', 8 * GiB).memory_bytes).toBe(0);
  expect(limits('32g', 8 * GiB).memory_bytes).toBe(32 * GiB);
});

test('limits stand beside the verdict, and one that was met is flagged beside a timeout too', async () => {
  const exceptionInfo = 'process limit 8192 reached (fork: Resource temporarily unavailable).';
  const { factory } = stage((command) =>
    tests(command) ? { output: '', timedOut: true, exitCode: -1, exceptionInfo } : {},
  );
  const result = await evaluatePrediction(request(factory));
  expect(result).toMatchObject({ outcome: 'timeout', limits: { pids: 8192 } });
  expect(result.suspicion).toMatchObject([{ rule: 'limit_met', evidence: 'process limit 8192 reached' }]);
  const died = stage((command) =>
    tests(command) ? new EnvironmentError('died', 'gone', { sub: 'oom' }) : {},
  );
  expect((await evaluatePrediction(request(died.factory))).suspicion).toMatchObject([{ rule: 'limit_met' }]);
  expect((await evaluatePrediction(request(factory, { patch: '' }))).limits).toBeNull();
});
