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
    bench = await faultBench({ inTrees: true, ids: ['a__a-1'] });
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
    bench = await faultBench({ inTrees: true, ids: ['a__a-1'], scripts: { 'a__a-1': script } });
    await bench.run(bench.id);
    const again = await bench.run(`${bench.id}-again`, ['-m', `replay:${bench.id}`]);
    expect(again.stderr).toMatch(
      /a__a-1: at step 1 the environment answered differently than in the recording: differs at character/,
    );
  });

  const attempts = (run: string) =>
    bench.query(
      `SELECT m.position AS arm, i.instance_id, t.epoch, a.number, a.exit_reason, a.exit_class FROM attempts a JOIN trials t ON t.id = a.trial_id
       JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk JOIN runs r ON r.id = t.run_id WHERE r.name = '${run}'
       ORDER BY t.position, a.number`,
    );
  const ledger = (run: string) =>
    bench.query(
      `SELECT m.position AS arm, i.instance_id, t.epoch, a.number, c.step, c.try, c.state, c.error_code, c.cost_nano, c.input_tokens, c.output_tokens
       FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id JOIN arms m ON m.id = t.arm_id
       JOIN instances i ON i.id = t.instance_pk JOIN runs r ON r.id = t.run_id WHERE r.name = '${run}' ORDER BY t.position, a.number, c.id`,
    );

  test('an attempt that infrastructure ended was paid too: it comes again, and after it the one that stands', async () => {
    const down = [{ status: 500 }, { status: 500 }, { status: 500 }];
    bench = await faultBench({
      inTrees: true,
      ids: ['a__a-1', 'a__a-2'],
      scripts: {
        'a__a-1': [GOOD[0]!, { content: bash(`sed -i 's/Hello/Hi/' src/greet.py`), before: down }, GOOD[2]!],
      },
      // Nobody waits for a server that is away.
      model: { retry: { base_delay_ms: 1, max_delay_ms: 5, max_retries: 2, max_retry_after_s: 0 } },
    });
    const recorded = await bench.run(bench.id);
    expect(recorded.code, recorded.stderr).toBe(0);
    expect(attempts(bench.id).map((a) => (a as { exit_reason: string }).exit_reason)).toEqual([
      'model_unavailable',
      'submitted',
      'submitted',
    ]);
    const heard = bench.server.requests.length;
    const again = `${bench.id}-again`;
    // One attempt would be all that this run allows itself: the recording decides.
    const once = ['-c', 'run.retry.attempts=1', '-m', `replay:${bench.id}`];
    expect((await bench.run(again, once)).code).toBe(0);
    const file = join(bench.root, 'traffic.gz');
    expect((await cli(['export', bench.id, 'recording', '-o', bench.root, '--to', file])).code).toBe(0);
    const third = `${bench.id}-third`;
    expect((await bench.run(third, [...once.slice(0, 2), '-m', `replay:${file}`])).code).toBe(0);
    for (const run of [again, third]) {
      expect(attempts(run)).toEqual(attempts(bench.id));
      expect(ledger(run)).toEqual(ledger(bench.id));
      expect(bench.preds(run)).toEqual(bench.preds(bench.id));
    }
    expect(bench.server.requests.length).toBe(heard);
  });

  test('an end by the wall clock comes again without the wait', async () => {
    bench = await faultBench({
      inTrees: true,
      ids: ['a__a-1'],
      scripts: { 'a__a-1': [GOOD[0]!, { hang: true }] },
      agent: { wall_time_limit_seconds: 4 },
      model: { first_byte_timeout_s: 100, total_timeout_s: 100 },
    });
    await bench.run(bench.id);
    expect(attempts(bench.id)).toMatchObject([{ exit_reason: 'limit_wall_time' }]);
    // A limit that cannot be reached by waiting: where the replay ends, the recording ended it.
    const patient = ['-m', `replay:${bench.id}`, '-c', 'agent.wall_time_limit_seconds=7000'];
    const again = `${bench.id}-again`;
    expect((await bench.run(again, patient)).code).toBe(0);
    expect(attempts(again)).toEqual(attempts(bench.id));
    expect(ledger(again)).toEqual(ledger(bench.id));
    expect(bench.preds(again)).toEqual(bench.preds(bench.id));
  });

  test('several arms, epochs, slots and both protocols: from the exported configuration each arm plays its own', async () => {
    const call = (command: string) => ({
      content: null,
      tool_calls: [{ function: { name: 'bash', arguments: JSON.stringify({ command }) } }],
    });
    const submit =
      'git add -A && git diff --cached > ../p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat ../p';
    bench = await faultBench({
      inTrees: true,
      ids: ['a__a-1', 'a__a-2'],
      scripts: {
        text: GOOD,
        tools: [
          { ...call('ls'), tool_calls: [...call('ls').tool_calls, ...call('ls src').tool_calls] },
          { content: 'no call' },
          call(`sed -i 's/Hello/Howdy/' src/greet.py`),
          call(submit),
        ],
      },
      config: { epochs: 2, workers: 3 },
    });
    const arms = [
      { name: 'text', model: { model_name: 'scripted/text' } },
      { name: 'tools', agent: { protocol: 'tool-call' }, model: { model_name: 'scripted/tools' } },
    ];
    const recorded = await bench.run(bench.id, ['-c', `arms=${JSON.stringify(arms)}`]);
    expect(recorded.code, recorded.stderr).toBe(0);
    const heard = bench.server.requests.length;
    expect(heard).toBe(4 * 3 + 4 * 4);
    const config = join(bench.root, 'exported.yaml');
    expect((await cli(['export', bench.id, 'config', '-o', bench.root, '--to', config])).code).toBe(0);
    const again = `${bench.id}-again`;
    const replayed = await cli(
      [
        'run',
        '-c',
        config,
        '-m',
        `replay:${bench.id}`,
        '-o',
        bench.root,
        '--run-id',
        again,
        '--progress',
        'plain',
      ],
      { env: { FAKE_KEY: CANARY } },
    );
    expect(replayed.code, replayed.stderr).toBe(0);
    expect(bench.server.requests.length).toBe(heard);
    expect(attempts(again)).toEqual(attempts(bench.id));
    expect(ledger(again)).toEqual(ledger(bench.id));
    for (const arm of ['text', 'tools'])
      for (const epoch of [1, 2]) {
        const preds = (run: string) =>
          readFileSync(join(bench.root, run, arm, `epoch-${epoch}`, 'preds.json'), 'utf8');
        expect(preds(again)).toBe(preds(bench.id));
        expect(preds(again)).toContain(arm === 'text' ? 'Hi' : 'Howdy');
      }
  });
});
