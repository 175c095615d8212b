// The common set-up of the fault suite (docs/appendix/proofs.md): four instances on a small image, a fake model server, the real program
// as a child process, and the assertions that hold at the end of every scenario.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { classCounts, type TrialLine, trialLines } from '../../src/store/records/trials.ts';
import { type CliResult, cli, type RunningCli, startCli, tempDir } from '../support/cli.ts';
import type { Script } from '../support/fakeAnswer.ts';
import { type FakeModelServer, startFakeModelServer } from '../support/fakeModelServer.ts';
import { random } from './random.ts';

/** Answers take anything up to this, so that no two runs of a scenario meet in the same order. */
const LATENCY_MS = 150;

const TREES = join(import.meta.dirname, '..', 'support', 'treeEnvironment.mjs');

export const IMAGE = 'swebatch-test/base:1';
export const CANARY = 'sk-canary-7Q2x/9vLw+Zk41TmR8';

export const bash = (command: string): string => `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\``;
export const SUBMIT = bash(
  'git add -A && git diff --cached > ../patch.txt; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat ../patch.txt',
);
/** Looks, edits, submits: three calls. */
export const GOOD: Script = [bash('cat src/greet.py'), bash(`sed -i 's/Hello/Hi/' src/greet.py`), SUBMIT];

export interface Bench {
  readonly root: string;
  /** A run name of its own: containers of tests that run beside it carry others. */
  readonly id: string;
  readonly server: FakeModelServer;
  readonly dataset: string;
  args(runId: string, ...more: string[]): string[];
  run(runId: string, more?: readonly string[], env?: Record<string, string>): Promise<CliResult>;
  start(runId: string, more?: readonly string[], env?: Record<string, string>): RunningCli;
  resume(runId: string, more?: readonly string[], env?: Record<string, string>): Promise<CliResult>;
  trials(runId: string): TrialLine[];
  query<T>(sql: string): T[];
  preds(runId: string): Record<string, { model_patch: string }>;
  close(): Promise<void>;
}

let baseCommit: string | undefined;
const baseCommitOf = (): string => {
  baseCommit ??= execFileSync(
    'docker',
    ['run', '--rm', '--network', 'none', IMAGE, 'git', '-C', '/testbed', 'rev-parse', 'HEAD'],
    { encoding: 'utf8' },
  ).trim();
  return baseCommit;
};

export interface BenchOptions {
  readonly ids?: readonly string[];
  readonly scripts?: Readonly<Record<string, Script>>;
  /** false: the configuration names no price. */
  readonly prices?: boolean;
  /** Keys of the section run beside the defaults. */
  readonly config?: Record<string, unknown>;
  /** Keys of the section environment beside the defaults. */
  readonly environment?: Record<string, unknown>;
  readonly agent?: Record<string, unknown>;
  readonly model?: Record<string, unknown>;
  /** Fields of the rows of the dataset beside the defaults. */
  readonly row?: (instanceId: string, n: number) => Record<string, unknown>;
  /** Each trial works on this machine, in a copy of the start tree: for faults in which the container plays no part. */
  readonly inTrees?: true;
  /** Where the results go; default: a new folder. */
  readonly output?: string;
}

function writeDataset(root: string, ids: readonly string[], row: BenchOptions['row']): string {
  const dataset = join(root, 'data.jsonl');
  const base_commit = baseCommitOf();
  writeFileSync(
    dataset,
    ids
      .map((instance_id, n) =>
        JSON.stringify({
          instance_id,
          repo: 'a/a',
          base_commit,
          image: IMAGE,
          problem_statement: `Greet differently. [[instance:${instance_id}]]`,
          patch: '',
          test_patch: '',
          FAIL_TO_PASS: '[]',
          PASS_TO_PASS: '[]',
          ...row?.(instance_id, n),
        }),
      )
      .join('\n'),
  );
  return dataset;
}

function writeConfig(root: string, url: string, options: BenchOptions): string {
  const config = join(root, 'config.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      agent: { step_limit: 12, cost_limit: 0, ...options.agent },
      environment: {
        timeout: 20,
        ...(options.inTrees
          ? { environment_class: TREES, cwd: baseTree() }
          : { memory: '512m', pull: 'never' }),
        ...options.environment,
      },
      model: {
        model_name: 'fake-1',
        base_url: url,
        api_key_env: 'FAKE_KEY',
        ...(options.prices === false ? {} : { prices: { input: 1, output: 2 } }),
        retry: { base_delay_ms: 1, max_delay_ms: 5, max_retries: 2 },
        first_byte_timeout_s: 10,
        total_timeout_s: 60,
        ...options.model,
      },
      run: {
        workers: 2,
        retry: { attempts: 2, backoff_s: 0 },
        breaker: { consecutive: 0, fraction: 0, empty_patches: 0 },
        ...options.config,
      },
    }),
  );
  return config;
}

export async function faultBench(options: BenchOptions = {}): Promise<Bench> {
  const root = tempDir('swebatch-fault-');
  const ids = options.ids ?? ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
  const scripts = { ...Object.fromEntries(ids.map((id) => [id, GOOD])), ...options.scripts };
  const server = await startFakeModelServer({
    scripts,
    by: 'history',
    strict: true,
    latencyMs: () => random() * LATENCY_MS,
  });
  const dataset = writeDataset(root, ids, options.row);
  const config = writeConfig(root, server.url, options);
  const output = options.output ?? join(root, 'out');
  const args = (runId: string, ...more: string[]) => [
    'run',
    '--subset',
    dataset,
    '-c',
    config,
    '-o',
    output,
    '--run-id',
    runId,
    '--progress',
    'plain',
    ...more,
  ];
  const env = (more: Record<string, string> = {}) => ({ env: { FAKE_KEY: CANARY, ...more } });
  const read = <T>(work: (store: ReturnType<typeof openStore>) => T): T => {
    const store = openStore(join(output, 'swebatch.db'), { readonly: true });
    try {
      return work(store);
    } finally {
      store.close();
    }
  };
  return {
    root: output,
    id: `fault-${process.pid}-${Math.random().toString(36).slice(2, 8)}`,
    server,
    dataset,
    args,
    // What somebody may kill has a process of its own (`start`).
    run: (runId, more = [], extra) => cli(args(runId, ...more), env(extra)),
    start: (runId, more = [], extra) => startCli(args(runId, ...more), env(extra)),
    resume: (runId, more = [], extra) =>
      cli(['resume', runId, '-o', output, '--progress', 'plain', ...more], env(extra)),
    trials: (runId) => read((store) => trialLines(store, runByName(store, runId)!.id)),
    query: <T>(sql: string) => read((store) => store.prepare(sql).all() as T[]),
    preds: (runId) =>
      JSON.parse(readFileSync(join(output, runId, 'preds.json'), 'utf8')) as Record<
        string,
        { model_patch: string }
      >,
    close: () => server.close(),
  };
}

export const containersOf = (runId: string): string[] =>
  execFileSync('docker', ['ps', '-aq', '--filter', `label=swebatch.run=${runId}`], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((f) => join(dir, f))
    .filter((f) => statSync(f).isFile());
}

/** Forms in which a leaked key would show. */
const canaryForms = [
  CANARY,
  encodeURIComponent(CANARY),
  JSON.stringify(CANARY).slice(1, -1),
  Buffer.from(CANARY).toString('base64').replace(/=+$/, ''),
];

let checkout: string | undefined;
/** The tree that the instances start from, on this machine. */
function baseTree(): string {
  if (checkout !== undefined) return checkout;
  checkout = join(tempDir('swebatch-base-'), 'testbed');
  const options = { encoding: 'utf8' } as const;
  const id = execFileSync('docker', ['create', '--network', 'none', IMAGE, 'true'], options).trim();
  execFileSync('docker', ['cp', `${id}:/testbed`, checkout]);
  execFileSync('docker', ['rm', '-f', id], { stdio: 'ignore' });
  return checkout;
}

/** Processes of this machine whose command line names the results of this bench. */
const processesOf = (bench: Bench): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const path = `/proc/${name}/cmdline`;
      try {
        return existsSync(path) && readFileSync(path, 'utf8').includes(bench.root);
      } catch {
        return false; // ended meanwhile
      }
    });

/** The first common assertion: nobody but the abnormal instances notices, and what the others submitted applies. */
export function expectOthersGood(
  bench: Bench,
  runId: string,
  abnormal: readonly string[] = ['a__a-1'],
): void {
  const others = bench.trials(runId).filter((t) => !abnormal.includes(t.instance_id));
  expect(others.length).toBeGreaterThan(0);
  const preds = bench.preds(runId);
  for (const { instance_id, exit_reason } of others) {
    expect([instance_id, exit_reason]).toEqual([instance_id, 'submitted']);
    const patch = preds[instance_id]!.model_patch;
    expect(patch).toContain('+    return "Hi " + name');
    execFileSync('git', ['-C', baseTree(), 'apply', '--check', '-'], { input: patch });
  }
}

/** The common assertions: totals reconcile, nothing is left over, the record verifies, files are whole, no secret is anywhere. */
export async function expectSound(
  bench: Bench,
  runId: string,
  planned: number,
  results: readonly CliResult[] = [],
): Promise<void> {
  const store = openStore(join(bench.root, 'swebatch.db'), { readonly: true });
  const run = runByName(store, runId)!;
  const counts = [...classCounts(store, run.id).values()].reduce((a, b) => a + b, 0);
  expect(counts).toBe(planned);
  expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
  store.close();
  expect((await cli(['verify', runId, '-o', bench.root])).code).toBe(0);
  expect(containersOf(runId)).toEqual([]);
  for (const kind of ['network', 'volume'])
    expect(
      execFileSync('docker', [kind, 'ls', '-q', '--filter', `label=swebatch.run=${runId}`], {
        encoding: 'utf8',
      }),
    ).toBe('');
  expect(processesOf(bench)).toEqual([]);
  const preds = readFileSync(join(bench.root, runId, 'preds.json'), 'utf8');
  expect(preds.endsWith('}\n')).toBe(true);
  const ids = readFileSync(join(bench.root, runId, 'all_preds.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((l) => (JSON.parse(l) as { instance_id: string }).instance_id);
  expect(new Set(ids).size).toBe(ids.length);
  const texts = [
    ...filesBelow(bench.root).map((f) => readFileSync(f).toString('latin1')),
    ...results.flatMap((r) => [r.stdout, r.stderr]),
  ];
  for (const form of canaryForms) expect(texts.filter((t) => t.includes(form))).toEqual([]);
}
