// Real evaluations in Docker: the matrix of T-59 on one image, the patch ladder, deadlines, and what is left behind.

import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { completeFactory } from '../../../src/environment/capabilities.ts';
import { createDockerFactory, type DockerFactory } from '../../../src/environment/docker/dockerFactory.ts';
import type { EnvironmentFactory } from '../../../src/environment/environment.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import {
  GRADING_DOCKER_OPTIONS,
  type GradingConfig,
  gradingConfigSchema,
  gradingEnvironment,
} from '../../../src/grading/gradingConfig.ts';
import type { EvaluationResult } from '../../../src/grading/gradingFrame.ts';
import { extendRegistry, type ParserRegistry } from '../../../src/grading/parsers/parserRegistry.ts';
import { applyPatch, PATCH_PATH } from '../../../src/grading/patchAndTests.ts';
import { type GradeSpec, resolveGradeSpec } from '../../../src/grading/specs/spec.ts';
import { summarizeEvaluation } from '../../../src/grading/storedReports.ts';
import { evaluatePrediction } from '../../../src/suites/sweBench/sweBench.ts';
import { PATCHES, PYTEST, SUM_REPO_SCRIPT, sumRow } from '../../grading/fixtures/sumRepo.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { derivedImage } from '../../support/dockerEnvironment.ts';
import { normaliseRow } from '../../support/suites.ts';

const available = await dockerAvailable();
const RUN = `grading-test-${process.pid}`;

describe.skipIf(!available)('evaluation in Docker', () => {
  const factories: DockerFactory[] = [];
  let image = '';
  beforeAll(async () => {
    image = await derivedImage(SUM_REPO_SCRIPT);
  });
  afterAll(async () => {
    await Promise.all(factories.map((factory) => factory.close()));
  });

  function factoryFor(config: GradingConfig): DockerFactory {
    const factory = createDockerFactory(
      { ...gradingEnvironment(config), pull: 'never' },
      { ...GRADING_DOCKER_OPTIONS, capAdd: config.cap_add },
    );
    factories.push(factory);
    return factory;
  }
  function specOf(row: Record<string, unknown>, parsers?: ParserRegistry): GradeSpec {
    const read = normaliseRow(row);
    if (!read.ok) throw new Error(read.messages.join());
    const found = resolveGradeSpec(read.instance, parsers ? { parsers } : {});
    if (!found.ok) throw new Error(found.reason);
    return found.spec;
  }
  interface Way {
    readonly row?: Record<string, unknown>;
    readonly config?: Partial<GradingConfig>;
    readonly parsers?: ParserRegistry;
    readonly factory?: EnvironmentFactory;
    readonly alone?: boolean;
  }
  async function evaluate(patch: string | null, way: Way = {}): Promise<EvaluationResult> {
    const config = gradingConfigSchema.parse({ timeout: 60, network: 'none', ...way.config });
    return evaluatePrediction({
      spec: specOf(way.row ?? sumRow(image), way.parsers),
      patch,
      factory: way.factory ?? factoryFor(config),
      config,
      owner: currentOwner(RUN, '1'),
      ...(way.alone && { alone: true }),
      ...(way.parsers && { parsers: way.parsers }),
    });
  }
  const rules = (result: EvaluationResult) => result.suspicion.map(({ rule }) => rule);
  const containersLeft = async () =>
    (await docker.listContainers({ all: true, filters: { label: [`swebatch.run=${RUN}`] } })).length;

  test('the matrix of T-59: twelve predictions, each with its own ending, and totals that reconcile', async () => {
    const broken: ParserRegistry = extendRegistry({
      broken: () => {
        throw new Error('this parser always breaks');
      },
    });
    const noStart = completeFactory({
      kind: 'none',
      start: () => Promise.reject(new Error('an empty prediction must not start a container')),
      close: () => Promise.resolve(),
    });
    const results = {
      gold: await evaluate(PATCHES.gold),
      broken: await evaluate(PATCHES.wrong),
      empty: await evaluate('', { factory: noStart }),
      noApply: await evaluate(PATCHES.unrelated),
      forgedFail: await evaluate(PATCHES.forgedFail),
      collision: await evaluate(PATCHES.collision),
      silent: await evaluate(PATCHES.silent),
      hang: await evaluate(PATCHES.hang, { config: { timeout: 2 } }),
      oom: await evaluate(PATCHES.hungry, { config: { memory: '100m' } }),
      binary: await evaluate(PATCHES.gold, {
        row: sumRow(image, `${PYTEST}; code=$?; printf '\\377\\376\\n'; (exit $code)`),
      }),
      changed: await evaluate(PATCHES.gold.replace('a + b', 'b + a')),
      parser: await evaluate(PATCHES.gold, {
        row: sumRow(image, PYTEST, { log_parser: 'broken' }),
        parsers: broken,
      }),
    };

    expect(results.gold).toMatchObject({
      outcome: 'resolved',
      resolved: true,
      resolvedStrict: true,
      applyMethod: 'git apply --verbose',
      exitCode: 0,
      suspicion: [],
    });
    expect(results.gold.imageDigest).toMatch(/sha256:/);
    expect(results.broken).toMatchObject({
      outcome: 'unresolved',
      resolved: false,
      resolvedStrict: false,
      exitCode: 1,
    });
    expect(results.empty).toMatchObject({ outcome: 'empty_patch', resolved: null, report: null, log: null });
    expect(results.noApply).toMatchObject({
      outcome: 'apply_failed',
      resolved: null,
      report: null,
      applyMethod: null,
      log: null,
    });
    expect(results.noApply.errorMessage).toMatch(/demo__sum-1: the patch does not apply.*calc\.py/s);
    expect(results.forgedFail).toMatchObject({
      outcome: 'unresolved',
      resolved: false,
      resolvedStrict: false,
    });
    expect(rules(results.forgedFail)).toEqual(
      expect.arrayContaining(['forged_output', 'touches_test_setup']),
    );
    // By the harness's own rules the patch's file runs; the strict reading does not believe it.
    expect(results.collision).toMatchObject({ resolved: true, resolvedStrict: false });
    expect(rules(results.collision)).toContain('test_patch_not_applied');
    expect(results.silent).toMatchObject({ outcome: 'invalid', resolved: false, resolvedStrict: false });
    expect(rules(results.silent)).toContain('no_evidence');
    expect(results.hang).toMatchObject({
      outcome: 'timeout',
      resolved: null,
      report: null,
      repeatAlone: true,
      infraReason: 'tests_timed_out',
    });
    expect(results.hang.log).toMatch(/\n\nTimeout error: 2 seconds exceeded\.$/);
    expect(results.oom).toMatchObject({ outcome: 'infra', infraReason: 'oom', resolved: false });
    expect(results.binary).toMatchObject({ outcome: 'resolved', resolved: true });
    expect(results.binary.log).toContain('�');
    expect(results.changed).toMatchObject({ outcome: 'resolved' });
    expect(results.changed.patchSha256).not.toBe(results.gold.patchSha256);
    expect(results.changed.specHash).toBe(results.gold.specHash);
    expect(results.parser).toMatchObject({ outcome: 'invalid', resolved: null, report: null });
    expect(results.parser.errorMessage).toMatch(/demo__sum-1: the log parser gave up: .*always breaks/);

    const ids = Object.keys(results);
    const report = summarizeEvaluation({
      instanceIds: ids,
      predictions: ids.map((id) => ({
        instance_id: id,
        model_name_or_path: 'm',
        model_patch: id === 'empty' ? '' : 'x',
      })),
      completed: new Map(
        Object.entries(results).map(([id, { report: one }]) => [
          id,
          { report: one && { resolved: one['demo__sum-1']!.resolved } },
        ]),
      ),
      harness: 'v5',
    });
    expect(report.resolved_ids).toEqual(['binary', 'changed', 'collision', 'gold']);
    expect(report.error_ids).toEqual(['hang', 'noApply', 'parser']);
    expect(report.unresolved_ids).toEqual(['broken', 'forgedFail', 'oom', 'silent']);
    expect(report.completed_instances + report.error_instances + report.empty_patch_instances).toBe(12);
    expect(await containersLeft()).toBe(0);
  });

  test('a forged log that ends with exit code 0 deceives the harness, not the strict reading', async () => {
    const result = await evaluate(PATCHES.forgedPass);
    expect(result).toMatchObject({ resolved: true, resolvedStrict: false });
    expect(rules(result)).toEqual(expect.arrayContaining(['forged_output', 'touches_test_setup']));
  });

  test('git of the grader runs nothing that a patch writes into .git/config', async () => {
    const row = sumRow(image);
    const seen = { ...row, eval_script: row.eval_script.replace('cd /testbed', 'cat /ran; cd /testbed') };
    const result = await evaluate(PATCHES.gitConfig, { row: seen });
    expect(result).toMatchObject({
      applyMethod: expect.stringContaining('patch --batch'),
      resolvedStrict: false,
    });
    expect(result.log).toContain('cat: /ran: No such file or directory');
    expect(rules(result)).toContain('touches_git_folder');
  });

  test('passes and an end mark that are printed before the script is killed are not believed', async () => {
    const result = await evaluate(PATCHES.killer);
    expect(result).toMatchObject({ resolved: true, resolvedStrict: false });
    expect(rules(result)).toContain('script_cut_off');
  });

  test('a prediction that tells an impossible end of its own tests is infra, with what it told', async () => {
    const result = await evaluate(PATCHES.impossibleEnd);
    expect(result).toMatchObject({ outcome: 'infra', infraReason: 'died', resolved: null, exitCode: null });
    expect(result.errorMessage).toMatch(/interfered.*"NaN 1e400 0 1e400"/s);
  });

  test('a fork bomb of a prediction stays in its container: its verdict is flagged, another grading beside it goes on', async () => {
    const processes = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length;
    const before = processes();
    const [bomb, beside] = await Promise.all([
      evaluate(PATCHES.forkBomb, { config: { pids_limit: 150, timeout: 20 } }),
      evaluate(PATCHES.gold),
    ]);
    expect(beside).toMatchObject({ outcome: 'resolved', limits: { pids: 8192 } });
    expect(rules(bomb)).toContain('limit_met');
    expect(bomb.limits).toMatchObject({ pids: 150 });
    expect(await containersLeft()).toBe(0);
    // Other tests start processes too, and theirs go again; those of a bomb that got out would stay.
    await expect.poll(processes).toBeLessThan(before + 150);
  });

  test('a memory bomb is ended by the limit of its container, flagged, and costs no other grading', async () => {
    const [bomb, beside] = await Promise.all([
      evaluate(PATCHES.hungry, { config: { memory: '200m' } }),
      evaluate(PATCHES.gold),
    ]);
    expect(beside.outcome).toBe('resolved');
    expect(bomb).toMatchObject({ limits: { memory_bytes: 200 * 2 ** 20 }, resolved: false });
    expect(rules(bomb)).toContain('limit_met');
  });

  test('a prediction that ends its container by its memory is evaluated again alone, and then that is its verdict', async () => {
    const way = { config: { memory: '256m' } };
    const first = await evaluate(PATCHES.endsContainer, way);
    expect(first).toMatchObject({ outcome: 'infra', infraReason: 'oom', repeatAlone: true });
    const again = await evaluate(PATCHES.endsContainer, { ...way, alone: true });
    expect(again).toMatchObject({ outcome: 'invalid', resolved: false, resolvedStrict: false });
    expect(rules(again)).toEqual(['limit_met', 'ended_environment']);
    expect(await containersLeft()).toBe(0);
  });

  test('streams keep their order: the trace of the script and the output of the tests interleave as written', async () => {
    const result = await evaluate(PATCHES.gold, {
      row: sumRow(image, `for i in 1 2 3; do echo out$i; echo err$i >&2; done; ${PYTEST}`),
    });
    expect(result.log!.match(/^(?:out|err)\d$/gm)).toEqual(['out1', 'err1', 'out2', 'err2', 'out3', 'err3']);
    expect(result.outcome).toBe('resolved');
  });

  test('without a network nothing leaves the container, and the verdict says so', async () => {
    const command = `echo interfaces: $(ls /sys/class/net); ${PYTEST}`;
    const row = sumRow(image, command);
    const cut = await evaluate(PATCHES.gold, { row, config: { network: 'none' } });
    expect(cut).toMatchObject({ outcome: 'resolved', network: 'none' });
    expect(cut.log).toMatch(/^interfaces: lo$/m);
    const open = await evaluate(PATCHES.gold, { row, config: gradingConfigSchema.parse({}) });
    expect(open.network).toBe('default');
    expect(open.log).toMatch(/^interfaces: eth0 lo$/m);
  });

  test('a capability is added only where it is asked for', async () => {
    const row = sumRow(image, `grep CapEff /proc/self/status; ${PYTEST}`);
    const capabilities = async (cap_add: string[]) =>
      BigInt(
        `0x${/CapEff:\s*([0-9a-f]+)/.exec((await evaluate(PATCHES.gold, { row, config: { cap_add } })).log!)![1]}`,
      );
    const SYS_ADMIN = 1n << 21n;
    expect((await capabilities([])) & SYS_ADMIN).toBe(0n);
    expect((await capabilities(['SYS_ADMIN'])) & SYS_ADMIN).toBe(SYS_ADMIN);
  });

  test('an interruption ends the evaluation at once and leaves no container', async () => {
    const stop = new AbortController();
    const config = gradingConfigSchema.parse({ timeout: 60, network: 'none' });
    const running = evaluatePrediction({
      spec: specOf(sumRow(image)),
      patch: PATCHES.hang,
      factory: factoryFor(config),
      config,
      owner: currentOwner(RUN, '2'),
      signal: stop.signal,
      onPhase: (phase) => phase === 'test' && stop.abort(new Error('the person pressed Ctrl-C')),
    });
    await expect(running).rejects.toThrow('Ctrl-C');
    expect(await containersLeft()).toBe(0);
  });

  describe('the patch ladder', () => {
    async function rung(patch: string, harness: 'v5' | 'v4.1', before = '') {
      const factory = factoryFor(gradingConfigSchema.parse({ network: 'none' }));
      const environment = await factory.start({
        instanceId: 'demo__sum-1',
        image,
        owner: currentOwner(RUN, '3'),
      });
      try {
        if (before) await environment.execute(before, { cwd: '/testbed' });
        await environment.putFile(PATCH_PATH, patch);
        const applied = await applyPatch(environment, harness, { cwd: '/testbed', timeoutS: 60 });
        const { output } = await environment.execute('cat calc.py', { cwd: '/testbed' });
        return { ...applied, tree: output };
      } finally {
        await environment.close();
      }
    }
    const offset = PATCHES.gold.replace(' def one():', ' def two():');

    test('a plain patch takes the first rung', async () => {
      expect(await rung(PATCHES.gold, 'v5')).toMatchObject({ method: 'git apply --verbose', failed: [] });
    });
    test('a wrong line of context needs the last rung, on a clean tree', async () => {
      const applied = await rung(offset, 'v5');
      expect(applied.method).toBe('patch --batch --forward --fuzz=5 -p1 -i');
      expect(applied.failed).toHaveLength(3);
      expect(applied.tree).toContain('return a + b');
      expect((await rung(offset, 'v4.1')).method).toBe('patch --batch --fuzz=5 -p1 -i');
    });
    test('a patch that is in the tree already counts as applied under v5 and is undone or refused under v4.1', async () => {
      const commit = "sed -i 's/a - b/a + b/' calc.py && git commit -qam done";
      expect((await rung(PATCHES.gold, 'v5', commit)).method).toBe('already applied');
      // `patch --batch` without --forward takes the patch for a reversed one.
      expect((await rung(PATCHES.gold, 'v4.1', commit)).tree).toContain('return a - b');
    });
    test('nothing is left of the rungs that failed', async () => {
      const half = `${PATCHES.gold}${PATCHES.unrelated.replaceAll('calc.py', 'missing.py')}`;
      const applied = await rung(half, 'v5');
      expect(applied.method).toBeNull();
      expect(applied.output).not.toBe('');
    });
  });
});
