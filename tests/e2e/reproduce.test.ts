// A run starts again from what it exports: through a real pipe, in real containers, with the scripted model.
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { cli, REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const sh = (script: string) =>
  promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: REPO, encoding: 'utf8' });
const swebatch = `'${process.execPath}' dist/cli/bin.js`;
const IDS = ['swebatch__tabular-23', 'swebatch__cronwheel-25', 'swebatch__cronwheel-27'];
const DEMO = ['--subset', 'datasets/demo/demo.jsonl', '-m', 'scripted:datasets/demo/replies'];
const how = ['-c', 'configs/demo.yaml', '--model-latency', '0'];

const start = (out: string, run: string, ids: readonly string[], ...more: string[]) =>
  cli(['run', ...DEMO, ...how, '--shuffle', '-i', ids.join(','), '-o', out, '--run-id', run, ...more]);
const cost = (out: string, run: string): unknown => {
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  try {
    return db
      .prepare(
        `SELECT count(*) AS calls, sum(c.cost_nano IS NULL) AS unknown, sum(c.cost_nano) AS nano FROM model_calls c
         JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id JOIN runs r ON r.id = t.run_id WHERE r.name = ?`,
      )
      .get(run);
  } finally {
    db.close();
  }
};
const manifest = async (out: string, run: string) =>
  JSON.parse((await cli(['show', run, '--manifest', '-o', out])).stdout);

describe.skipIf(!docker)('the same run again', () => {
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

  test.each([
    ['mini-swe-agent-1', 'mini-swe-agent-1'],
    ['mini-swe-agent-2', 'mini-swe-agent-1.1'],
  ])(
    'a folder of %s (format %s) is imported, graded, reported and compared as a run of ours',
    async (compat, format) => {
      const out = tempDir();
      const ids = ['swebatch__cronwheel-23', 'swebatch__cronwheel-27', 'swebatch__tabular-28'];
      const regex = 'agent.action_regex=```bash\\s*\\n(.*?)\\n```';
      const shows = 'agent.observation_template=<rc>{{ output.returncode }}</rc>{{ output.output }}';
      const as = [
        '-c',
        `agent.compat=${compat}`,
        '-c',
        'agent.protocol=bash-block',
        '-c',
        regex,
        '-c',
        shows,
      ];
      const first = await start(out, 'r1', ids, ...as, '--evaluate');
      expect(first.code, first.stderr).toBe(0);
      const folder = join(out, 'elsewhere', 'theirs');
      for (const part of ['trajectories', 'preds.json'])
        cpSync(join(out, 'r1', part), join(folder, part), { recursive: true });
      const one = join(folder, 'trajectories', ids[0]!, `${ids[0]}.traj.json`);
      expect(JSON.parse(readFileSync(one, 'utf8')).trajectory_format).toBe(format);

      const data = ['--subset', 'datasets/demo/demo.jsonl'];
      expect((await cli(['import', folder, ...data, '--run-id', 'theirs', '-o', out])).code).toBe(0);
      expect((await cli(['evaluate', 'theirs', '-o', out])).code).toBe(0);
      const outcomes = async (run: string) =>
        JSON.parse((await cli(['ls', run, '-o', out, '--json'])).stdout).map(
          (t: { instance_id: string; exit_reason: string; outcome: string; resolved: number }) =>
            [t.instance_id, t.exit_reason, t.outcome, t.resolved].join(' '),
        );
      expect((await outcomes('theirs')).toSorted()).toEqual((await outcomes('r1')).toSorted());
      const predictions = (path: string) => JSON.parse(readFileSync(join(path, 'preds.json'), 'utf8'));
      expect(predictions(join(out, 'theirs'))).toEqual(predictions(folder));
      const compared = await cli(['compare', 'r1', 'theirs', '-o', out]);
      expect(compared.stdout).toMatch(/matched +3/);
      expect(compared.stdout).toContain('0 fixed, 0 broken');
      // Its trajectories say how it was run, so the two are held against each other, and agree.
      expect(compared.stdout).not.toContain('does not say limits');
      expect(compared.stdout).not.toMatch(/agent\.|_template/);
      expect((await cli(['report', 'theirs', '-o', out])).stdout).toMatch(/resolved +1\/3/);
      expect((await cli(['verify', 'theirs', '-o', out])).code).toBe(0);
      // Version 1 writes down no cost of a call; replies of a scripted model are free, as its name says.
      const replayed = JSON.parse((await cli(['replay', folder, '--json'])).stdout) as object[];
      expect(replayed).toHaveLength(3);
      for (const file of replayed)
        expect(file).toMatchObject({
          exit_status_equal: true,
          submission_equal: true,
          cost_equal: true,
        });
      expect(cost(out, 'theirs')).toEqual({ calls: 28, unknown: 0, nano: 0 });
      const onto = await cli(['import', join(out, 'r1'), '--run-id', 'r1', '-o', out]);
      expect(onto.code).toBe(2);
      expect(onto.stderr).toContain('choose another --run-id');
    },
  );

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
