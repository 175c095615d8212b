// A recorded run played again with --model replay: no network, the same predictions, ledger and exit reasons.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, test } from 'vitest';
import { type Bench, bash, CANARY, faultBench, GOOD } from '../faults/support.ts';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const LEDGER = `SELECT i.instance_id, c.step, c.try, c.state, CASE WHEN c.state <> 'ok' THEN c.status_code END AS status_code, c.error_code, c.cost_nano, c.input_tokens, c.output_tokens
  FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id JOIN instances i ON i.id = t.instance_pk
  JOIN runs r ON r.id = t.run_id WHERE r.name = `;

describe.skipIf(!docker)('replaying a run', () => {
  test('faults, limits and refusals come again, call by call, and the server hears nothing', async () => {
    bench = await faultBench({
      scripts: {
        'a__a-1': [{ content: bash('ls'), before: [{ status: 500 }, { status: 429 }] }, ...GOOD.slice(1)],
        'a__a-2': ['no block here', 'still none', 'and none'],
        'a__a-3': [
          bash('ls'),
          {
            status: 400,
            body: {
              error: { message: 'maximum context length is 8192 tokens', code: 'context_length_exceeded' },
            },
          },
        ],
        'a__a-4': [{ content: '' }, { content: '' }, { content: '' }],
      },
    });
    const recorded = await bench.run(bench.id);
    expect(recorded.code, recorded.stderr).toBe(0);
    const heard = bench.server.requests.length;
    const again = await bench.run(`${bench.id}-again`, ['-m', `replay:${bench.id}`]);
    expect(again.code).toBe(0);
    expect(bench.server.requests.length).toBe(heard);
    const view = (id: string) =>
      bench.trials(id).map((t) => [t.instance_id, t.exit_reason, t.steps, t.model]);
    expect(view(`${bench.id}-again`)).toEqual(view(bench.id));
    expect(bench.preds(`${bench.id}-again`)).toEqual(bench.preds(bench.id));
    const ledger = (id: string) => bench.query(`${LEDGER}'${id}' ORDER BY 1, c.id`);
    expect(ledger(bench.id).length).toBe(heard);
    expect(ledger(`${bench.id}-again`)).toEqual(ledger(bench.id));

    // The same from a file, in a results root that never saw the run, with the server gone.
    const file = join(bench.root, 'traffic.gz');
    const exported = await cli(['export', bench.id, 'recording', '-o', bench.root, '--to', file]);
    expect(exported.stdout.trim()).toBe(file);
    await bench.server.close();
    const elsewhere = join(bench.root, 'elsewhere');
    const third = await cli(
      bench.args('third', '-m', `replay:${file}`).map((arg) => (arg === bench.root ? elsewhere : arg)),
    );
    expect(third.code, third.stderr).toBe(0);
    expect(readFileSync(join(elsewhere, 'third', 'preds.json'), 'utf8')).toBe(
      readFileSync(join(bench.root, bench.id, 'preds.json'), 'utf8'),
    );
    const other = new Database(join(elsewhere, 'swebatch.db'), { readonly: true });
    expect(other.prepare(`${LEDGER}'third' ORDER BY 1, c.id`).all()).toEqual(ledger(bench.id));
    other.close();
    const zcat = gunzipSync(readFileSync(file)).toString('utf8');
    expect(zcat).toContain('maximum context length is 8192 tokens');
    expect(zcat).not.toContain(CANARY);
  });

  test('of several arms one is named', async () => {
    bench = await faultBench({
      ids: ['a__a-1'],
      config: {},
      scripts: { 'a__a-1': GOOD },
    });
    const arms = JSON.stringify([
      { name: 'short', agent: { step_limit: 1 } },
      { name: 'long', agent: { step_limit: 9 } },
    ]);
    expect((await bench.run(bench.id, ['-c', `arms=${arms}`])).code).toBe(0);
    const replies = (run: string) =>
      bench.query<{ n: number }>(
        `SELECT count(*) AS n FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id
         JOIN runs r ON r.id = t.run_id WHERE r.name = '${run}'`,
      )[0]!.n;
    expect(replies(bench.id)).toBe(4);
    expect((await bench.run('long', ['-m', `replay:${bench.id}/long`])).code).toBe(0);
    expect(replies('long')).toBe(3);
    const none = await bench.run('none', ['-m', `replay:${bench.id}/wide`]);
    expect(none.code).toBe(2);
    expect(none.stderr).toContain('has no arm "wide"');
    expect(none.stderr).toContain('short, long');
  });

  test('an environment that answers differently is told with its step and the difference', async () => {
    const script = [bash('date +%N'), ...GOOD];
    bench = await faultBench({ ids: ['a__a-1'], scripts: { 'a__a-1': script } });
    await bench.run(bench.id);
    const again = await bench.run(`${bench.id}-again`, ['-m', `replay:${bench.id}`]);
    expect(again.stderr).toMatch(
      /a__a-1: at step 1 the environment answered differently than in the recording: differs at character/,
    );
  });
});
