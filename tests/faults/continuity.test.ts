// A run that goes on must be the same run (T-54), and what a secret touches is replaced wherever it is written (T-58).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { dockerAvailable } from '../support/docker.ts';
import {
  type Bench,
  bash,
  CANARY,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
  IMAGE,
  SUBMIT,
} from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

/** Stops after the first instance, so that there is something to go on with. */
async function interrupted(options: Parameters<typeof faultBench>[0] = {}): Promise<void> {
  bench = await faultBench({ ...options, config: { workers: 1, ...options.config } });
  const running = bench.start(bench.id);
  await bench.server.waitForRequests(1);
  running.process.kill('SIGINT');
  expect((await running.done).code).toBe(130);
}

describe.skipIf(!docker)('T-54 going on with something else', () => {
  test('a changed model, limit or prompt is refused with the keys; allowed, it is a boundary that the exports show [T-54]', async () => {
    await interrupted({ inTrees: true });
    const sent = bench.server.requests.length;
    const changes = [
      ['-m', 'fake-2'],
      ['-c', 'agent.step_limit=7'],
      ['-c', 'agent.system_template=Be brief.'],
    ];
    const keys = [
      'configuration changed:\n  model.model_name: was "fake-1", now "fake-2"',
      'agent.step_limit: was 12, now 7',
      'agent.system_template',
    ];
    for (const [n, change] of changes.entries()) {
      const refused = await bench.run(bench.id, change);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain('the configuration changed');
      expect(refused.stderr).toContain(keys[n]!);
    }
    expect(bench.server.requests.length).toBe(sent);
    // Another model is another arm, also when changes are allowed: its predictions would carry the wrong name.
    const other = await bench.run(bench.id, [...changes[0]!, '--allow-config-change']);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('a new arm needs a new run');
    expect(bench.server.requests.length).toBe(sent);
    const allowed = await bench.run(bench.id, [...changes[1]!, '--allow-config-change']);
    expect(allowed.code).toBe(0);
    expect(
      bench
        .query<{ limit: number }>(
          `SELECT json_extract(config, '$.agent.step_limit') AS "limit" FROM attempts ORDER BY id`,
        )
        .map((r) => r.limit)
        .filter((limit, n, all) => limit !== all[n - 1]),
    ).toEqual([12, 7]);
    const manifest = JSON.parse(readFileSync(join(bench.root, bench.id, 'run.json'), 'utf8')) as {
      observed: { changes: { change: { changed: { key: string; was: string; is: string }[] } }[] };
    };
    expect(manifest.observed.changes.flatMap((c) => c.change.changed)).toContainEqual({
      key: expect.stringMatching(/agent\.step_limit$/),
      was: '12',
      is: '7',
    });
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [allowed]);
  });

  test('a changed row of the dataset is refused by its id [T-54]', async () => {
    await interrupted({ inTrees: true });
    const sent = bench.server.requests.length;
    const rows = readFileSync(bench.dataset, 'utf8');
    writeFileSync(
      bench.dataset,
      rows.replace('Greet differently. [[instance:a__a-3]]', 'Other. [[instance:a__a-3]]'),
    );
    const refused = await bench.run(bench.id);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/the dataset changed:\s+a__a-3: the row has changed/);
    expect(bench.server.requests.length).toBe(sent);
    writeFileSync(bench.dataset, rows);
    expect((await bench.run(bench.id)).code).toBe(0);
    await expectSound(bench, bench.id, 4);
  });

  test('an image that is another one under the same name is refused, by run and by resume [T-54]', async () => {
    const name = `swebatch-test/moving-${process.pid}:1`;
    execFileSync('docker', ['tag', IMAGE, name]);
    try {
      await interrupted({ row: () => ({ image: name }) });
      const sent = bench.server.requests.length;
      const context = mkdtempSync(join(tmpdir(), 'swebatch-moving-'));
      writeFileSync(join(context, 'Dockerfile'), `FROM ${IMAGE}\nLABEL swebatch.test=moved\n`);
      execFileSync('docker', ['build', '-q', '-t', name, context], { stdio: 'ignore' });
      for (const refused of [await bench.run(bench.id), await bench.resume(bench.id)]) {
        expect(refused.code).toBe(2);
        expect(refused.stderr).toContain(`images changed:\n  image ${name}: was `);
      }
      expect(bench.server.requests.length).toBe(sent);
      const allowed = await bench.resume(bench.id, ['--allow-config-change']);
      expect(allowed.code).toBe(0);
      expect(
        bench.query<{ data: string }>(`SELECT data FROM events WHERE type = 'config_changed'`)[0]!.data,
      ).toContain(`image ${name}`);
      expectOthersGood(bench, bench.id, []);
      await expectSound(bench, bench.id, 4, [allowed]);
    } finally {
      execFileSync('docker', ['rmi', '-f', name], { stdio: 'ignore' });
    }
  });
});

describe.skipIf(!docker)('T-58 secrets', () => {
  test('a key that the agent prints, the model echoes and the provider quotes is nowhere, in none of four forms [T-58]', async () => {
    const base64 = Buffer.from(CANARY).toString('base64');
    // Built in the container, so that no form of it is in a script; the halves come out in two writes.
    const half = CANARY.length >> 1;
    const [a, b] = [CANARY.slice(0, half), CANARY.slice(half)];
    bench = await faultBench({
      scripts: {
        'a__a-1': [
          bash('env'),
          bash(`printf '%s' '${a}'; sleep 0.3; printf '%s\\n' '${b}'`),
          bash(
            `K='${a}''${b}'; printf '%s' "$K" | base64; python3 -c "import urllib.parse,sys; print(urllib.parse.quote(sys.argv[1], safe=''))" "$K"`,
          ),
          `${encodeURIComponent(CANARY)} and ${base64} and ${JSON.stringify(CANARY)}\n\n${bash('true')}`,
          ...GOOD,
        ],
        'a__a-2': [
          { status: 400, body: { error: { message: `bad request with ${CANARY} in it: ${base64}` } } },
        ],
      },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    const outputs = bench.query<{ output: string }>(
      'SELECT CAST(output AS TEXT) AS output FROM commands ORDER BY id',
    );
    expect(outputs.some((c) => c.output.includes('PATH='))).toBe(true);
    expect(outputs.filter((c) => c.output.includes('redacted')).length).toBeGreaterThanOrEqual(2);
    expectOthersGood(bench, bench.id, ['a__a-2']);
    // Greps the database, the log, the exports, stdout and stderr.
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('in a submitted patch it is flagged and kept, never changed in silence [T-58]', async () => {
    const half = CANARY.length >> 1;
    const put = `A='${CANARY.slice(0, half)}'; B='${CANARY.slice(half)}'; echo "$A$B" >> README.md`;
    bench = await faultBench({ inTrees: true, scripts: { 'a__a-1': [bash(put), SUBMIT] } });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(bench.preds(bench.id)['a__a-1']!.model_patch).toContain(CANARY);
    const [attempt] = bench.query<{ notes: string }>(
      `SELECT notes FROM attempts WHERE notes LIKE '%secret%'`,
    );
    expect(attempt!.notes).toContain(
      'the submitted patch contains a secret of this machine; it was kept as it is',
    );
  });
});
