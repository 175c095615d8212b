// A run starts again from what it exports: through a real pipe, in real containers, with the scripted model.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { cli, REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const sh = (script: string) =>
  promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: REPO, encoding: 'utf8' });
const swebatch = `'${process.execPath}' src/cli/bin.ts`;
const IDS = ['swebatch__tabular-23', 'swebatch__mdlite-26', 'swebatch__routelet-23'];
const DEMO = ['--subset', 'datasets/demo/demo.jsonl', '-m', 'scripted:datasets/demo/replies'];
const how = ['-c', 'configs/demo.yaml', '--model-latency', '0'];

const start = (out: string, run: string, ids: readonly string[], ...more: string[]) =>
  cli(['run', ...DEMO, ...how, '--shuffle', '-i', ids.join(','), '-o', out, '--run-id', run, ...more]);
const manifest = async (out: string, run: string) =>
  JSON.parse((await cli(['show', run, '--manifest', '-o', out])).stdout);

describe.skipIf(!docker)('the same run again', { timeout: 300_000 }, () => {
  test('export RUN config | run -c - has its configuration hash, its ids in their order, and its predictions', async () => {
    const out = tempDir();
    const first = await start(out, 'r1', IDS);
    expect(first.code, first.stderr).toBe(0);
    await sh(
      `${swebatch} export r1 config -o '${out}' | ${swebatch} run -c - -o '${out}' --run-id r2 --progress none`,
    );
    const [a, b] = [await manifest(out, 'r1'), await manifest(out, 'r2')];
    expect(b.config_hash).toBe(a.config_hash);
    expect(b.config).toEqual(a.config);
    expect(b.dataset).toEqual(a.dataset);
    // Shuffled, so that the order is not the dataset's.
    expect(a.dataset.instance_ids).not.toEqual(a.dataset.instance_ids.toSorted());
    const preds = (run: string) => readFileSync(join(out, run, 'preds.json'), 'utf8');
    expect(preds('r2')).toBe(preds('r1'));
    expect(Object.keys(JSON.parse(preds('r1')))).toHaveLength(3);
    const same = await cli(['compare', 'r1', 'r2', '--config', '-o', out]);
    expect(same.stdout).toContain('r1 and r2 were run with the same configuration.');
    const other = await start(out, 'r3', IDS, '-c', 'agent.step_limit=9');
    expect(other.code, other.stderr).toBe(0);
    const differs = await cli(['compare', 'r1', 'r3', '--config', '-o', out, '--json']);
    expect(
      JSON.parse(differs.stdout).differences.map((d: { key: string; a: string; b: string }) => [
        d.key,
        d.a,
        d.b,
      ]),
    ).toEqual([
      ['config.arm.agent.step_limit', '15', '9'],
      ['config_hash', a.config_hash, (await manifest(out, 'r3')).config_hash],
    ]);
  });

  test('rows that changed since are refused before anything starts', async () => {
    const out = tempDir();
    expect((await start(out, 'r1', IDS.slice(0, 1))).code).toBe(0);
    const text = (await cli(['export', 'r1', 'config', '-o', out])).stdout;
    const changed = join(out, 'changed.jsonl');
    const rows = readFileSync(join(REPO, 'datasets/demo/demo.jsonl'), 'utf8');
    writeFileSync(changed, rows.replaceAll('"problem_statement":"', '"problem_statement":"Changed. '));
    const file = join(out, 'again.yaml');
    writeFileSync(file, text.replace('subset: datasets/demo/demo.jsonl', `subset: ${changed}`));
    const refused = await cli(['run', '-c', file, '-o', out, '--run-id', 'r2']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('differ from dataset.rows_sha256');
    expect(refused.stderr).toContain('remove dataset.rows_sha256');
    expect((await cli(['show', 'r2', '-o', out])).code).toBe(2);
  });
});
