// T-59 as a person runs it: twelve predictions in one call, each with its own ending; a timeout is repeated once, alone; totals reconcile.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { PATCHES, PYTEST, SUM_REPO_SCRIPT, sumRow } from '../grading/fixtures/sumRepo.ts';
import { startCli } from '../support/cli.ts';
import { dockerAvailable, watchDocker } from '../support/docker.ts';
import { derivedImage } from '../support/dockerEnvironment.ts';

const available = await dockerAvailable();
const dir = mkdtempSync(join(tmpdir(), 'swebatch-matrix-'));
const RUN = `matrix-${process.pid}`;
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const CASES = {
  gold: PATCHES.gold,
  broken: PATCHES.wrong,
  empty: '',
  noapply: PATCHES.unrelated,
  spoof: PATCHES.forgedFail,
  collision: PATCHES.collision,
  silent: PATCHES.silent,
  hang: PATCHES.hang,
  oom: PATCHES.hungry,
  binary: PATCHES.gold,
  changed: PATCHES.wrong,
  parser: PATCHES.gold,
} as const;
type Case = keyof typeof CASES;
const names = Object.keys(CASES) as Case[];
const idOf = (name: Case) => `demo__${name}-1`;

describe.skipIf(!available)('T-59 through the program', () => {
  const evaluate = (...more: string[]) =>
    startCli(
      [
        ...['evaluate', 'preds.json', '--subset', 'data.jsonl', '-o', 'out', '--run-id', RUN],
        ...['-w', '3', '-t', '30', '--memory', '150m', '--parser', 'broken=./broken.mjs', '--json', ...more],
      ],
      { cwd: dir },
    ).done;
  const writePredictions = (patches: Record<Case, string>) =>
    writeFileSync(
      join(dir, 'preds.json'),
      JSON.stringify(
        names.map((name) => ({
          instance_id: idOf(name),
          model_name_or_path: 'm',
          model_patch: patches[name],
        })),
      ),
    );

  test('twelve endings, one repeat alone, and a changed patch graded again', async () => {
    const image = await derivedImage(SUM_REPO_SCRIPT);
    const row = (name: Case) => {
      const more = { instance_id: idOf(name), ...(name === 'parser' ? { log_parser: 'broken' } : {}) };
      return name === 'binary'
        ? sumRow(image, `${PYTEST}; code=$?; printf '\\377\\376\\n'; (exit $code)`, more)
        : sumRow(image, PYTEST, more);
    };
    writeFileSync(join(dir, 'data.jsonl'), names.map((name) => JSON.stringify(row(name))).join('\n'));
    writeFileSync(
      join(dir, 'broken.mjs'),
      "export const parseLog = () => { throw new Error('always breaks'); };",
    );
    writePredictions(CASES);
    // The removals too: once the last of them is told, every start was.
    const watch = await watchDocker({
      type: ['container'],
      event: ['start', 'destroy'],
      label: [`swebatch.run=${RUN}`],
    });
    const first = await evaluate();
    const count = (action: string, name?: Case) =>
      watch.seen.filter(
        ({ Action, Actor }) =>
          Action === action && (!name || Actor.Attributes['swebatch.instance'] === idOf(name)),
      ).length;
    await watch.until(() => count('destroy') >= names.length);
    watch.close();
    // The memory kill is the machine's affair: it has no verdict, and the run says that it is incomplete.
    expect(first.code, first.stderr).toBe(3);
    expect(first.stderr).toContain('incomplete: 1 prediction(s) have no verdict');
    const ended = (name: Case) => new RegExp(`${idOf(name)} {2}(\\w+)`).exec(first.stderr)?.[1];
    expect(Object.fromEntries(names.map((name) => [name, ended(name)])), first.stderr).toEqual({
      gold: 'resolved',
      broken: 'unresolved',
      empty: 'empty_patch',
      noapply: 'apply_failed',
      spoof: 'unresolved',
      collision: 'resolved',
      silent: 'invalid',
      hang: 'timeout',
      oom: 'infra',
      binary: 'resolved',
      changed: 'unresolved',
      parser: 'invalid',
    });
    expect(first.stderr).toMatch(/the patch does not apply/);
    expect(first.stderr).toMatch(/the log parser gave up: .*always breaks/);

    const started = Object.fromEntries(names.map((name) => [name, count('start', name)]));
    expect(started).toEqual({ ...Object.fromEntries(names.map((n) => [n, 1])), empty: 0, hang: 2 });

    const [{ report }] = JSON.parse(first.stdout) as [{ report: Record<string, string[] & number> }];
    expect(report.resolved_ids).toEqual(['binary', 'collision', 'gold'].map((n) => idOf(n as Case)));
    expect(report.empty_patch_ids).toEqual([idOf('empty')]);
    expect(report.error_ids).toEqual((['hang', 'noapply', 'parser'] as const).map(idOf));
    expect(report.completed_instances! + report.error_instances! + report.empty_patch_instances!).toBe(
      report.submitted_instances,
    );

    const strict = await startCli(['report', RUN, '-o', 'out', '--json'], { cwd: dir }).done;
    const arm = JSON.parse(strict.stdout).arms[0];
    const flags = new Map<string, string[]>(
      arm.flagged.trials.map((t: { instance_id: string; rules: string[] }) => [t.instance_id, t.rules]),
    );
    expect(flags.get(idOf('spoof'))).toEqual(expect.arrayContaining(['forged_output', 'touches_test_setup']));
    expect(flags.get(idOf('collision'))).toContain('test_patch_not_applied');
    expect(flags.get(idOf('gold'))).toBeUndefined();
    expect(arm.resolved_strict.x).toBe(arm.resolved.x - 1);

    // The same run with another patch: that one is graded again, and what had no usable verdict.
    writePredictions({ ...CASES, changed: PATCHES.gold });
    const second = await evaluate();
    expect(second.stderr).toMatch(/demo__changed-1 {2}resolved/);
    expect([...second.stderr.matchAll(/\] (demo__\w+-1)/g)].map((m) => m[1]).toSorted()).toEqual(
      (['changed', 'oom'] as const).map(idOf),
    );

    // Who asks for one is told about that one: the number, the notes and the exit code.
    const one = await evaluate('-i', idOf('gold'));
    expect(one.code, one.stderr).toBe(0);
    expect(one.stderr).not.toContain('note:');
    expect(JSON.parse(one.stdout)[0].report).toMatchObject({
      total_instances: 1,
      submitted_instances: 1,
      resolved_instances: 1,
      error_instances: 0,
    });
  });
});
