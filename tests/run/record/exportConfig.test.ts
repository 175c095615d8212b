// A configuration that was exported loads as the same arms with the same hash, whatever file it came from.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type RunArgs, runOptionsOf } from '../../../src/cli/flags/runFlags.ts';
import { runRows } from '../../../src/run/plan/planRecord.ts';
import { type ResolvedConfig, resolveConfig } from '../../../src/run/plan/resolveConfig.ts';
import { exportConfig } from '../../../src/run/record/exportRun.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-export-config-'));
afterAll(() => rmSync(home, { recursive: true }));
const published = join(import.meta.dirname, '../../../../shared/data/configs');

const resolve = async (args: Partial<RunArgs>) =>
  resolveConfig(runOptionsOf(args as RunArgs), { cwd: process.cwd(), env: process.env });

/** What `export RUN config` would say of a run with this configuration. */
function exported(resolved: ResolvedConfig): string {
  const plan = runRows({
    name: 'r1',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...resolved,
    configHash: resolved.hash,
    dataset: {
      source: 'd.jsonl',
      split: null,
      revision: null,
      fileHash: '',
      count: 0,
      wanted: resolved.dataset,
    },
    selected: [],
    manifest: {},
  });
  return exportConfig(plan.run, []);
}

async function again(resolved: ResolvedConfig): Promise<ResolvedConfig> {
  const file = join(home, 'exported.yaml');
  writeFileSync(file, exported(resolved));
  return resolve({ config: [file] });
}

const shipped = ['default.yaml', 'swebench.yaml', 'swebench-text.yaml', 'nightly.yaml', 'demo.yaml'];
const theirs: [string, string][] = [
  ['mini-swe-agent-1.17.5.swebench.yaml', 'mini-swe-agent-1'],
  ['mini-swe-agent-2.4.6.swebench.yaml', 'mini-swe-agent-2'],
  ['mini-swe-agent-2.4.6.swebench_backticks.yaml', 'mini-swe-agent-2'],
];
const nasty = 'a: "b"\t\n  {{ task }} \\n {%- if true %} ```bash\n\n#x\r\n{% endif %}é\u{1F600}\n\n\n';

describe.each<[string, Partial<RunArgs>, boolean]>([
  ...shipped.map((file): [string, Partial<RunArgs>, boolean] => [
    file,
    { config: [file], model: ['groq/x'] },
    true,
  ]),
  ...theirs.map(([file, compat]): [string, Partial<RunArgs>, boolean] => [
    file,
    { config: [join(published, file), `agent.compat=${compat}`], model: ['groq/x'] },
    existsSync(published),
  ]),
  ['two models', { model: ['groq/b', 'c'] }, true],
  ['an arm with a name', { config: ['arms=[{"name":"x","model":{"model_name":"m"}}]'] }, true],
  ['texts with everything YAML minds', { config: [`agent.instance_template=${nasty}`], model: ['m'] }, true],
])('%s', (_name, args, there) => {
  test.skipIf(!there)('comes back as it was', async () => {
    const first = await resolve(args);
    const second = await again(first);
    expect(second.arms).toEqual(first.arms);
    expect(second.run).toEqual(first.run);
    expect(second.grading).toEqual(first.grading);
    expect(second.images).toEqual(first.images);
    expect(second.hash).toBe(first.hash);
  });
});

describe('which rows', () => {
  const selection = { subset: 'd.jsonl', slice: '0:5', shuffle: true, seed: 7, instance: ['a,b', 'c'] };
  test('the selection comes back, with a hash over its rows', async () => {
    const { dataset } = await again(await resolve(selection));
    expect(dataset).toMatchObject({
      subset: 'd.jsonl',
      slice: '0:5',
      shuffle: true,
      seed: 7,
      instances: ['a', 'b', 'c'],
    });
    expect(dataset.rows_sha256).toMatch(/^[0-9a-f]{64}$/);
  });
  test('a flag changes its part, and the hash says nothing about that; another dataset has its own selection', async () => {
    const file = join(home, 'exported.yaml');
    writeFileSync(file, exported(await resolve(selection)));
    expect((await resolve({ config: [file], slice: '0:1' })).dataset).toEqual({
      subset: 'd.jsonl',
      slice: '0:1',
      shuffle: true,
      seed: 7,
      instances: ['a', 'b', 'c'],
    });
    expect((await resolve({ config: [file], subset: 'lite' })).dataset).toEqual({ subset: 'lite' });
  });
});
