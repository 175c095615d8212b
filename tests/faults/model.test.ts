// Faults of the model server, through the whole program: how attempts end, what the server sees, what the record says. Two of them in containers.
import { afterEach, describe, expect, test } from 'vitest';
import { dockerAvailable } from '../support/docker.ts';
import { type Bench, bash, CANARY, expectOthersGood, expectSound, faultBench, GOOD } from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

describe.skipIf(!docker)('model faults', () => {
  test('T-01 three 429s with Retry-After are waited for by every slot; the retries are rows without cost [M-60]', async () => {
    const limited = { status: 429, headers: { 'retry-after': '2' } };
    bench = await faultBench({
      inTrees: true,
      scripts: {
        'a__a-1': [{ ...asReply(GOOD[0]), before: Array(3).fill(limited) }, ...GOOD.slice(1)],
      },
      model: { retry: { base_delay_ms: 1, max_delay_ms: 5, max_retries: 3 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(bench.trials(bench.id).map((t) => t.exit_reason)).toEqual(Array(4).fill('submitted'));
    expect(bench.server.requests.length).toBe(4 * 3 + 3);
    expect(bench.query("SELECT status_code, cost_nano FROM model_calls WHERE state = 'failed'")).toEqual(
      Array(3).fill({ status_code: 429, cost_nano: 0 }),
    );
    const tries = bench.server.requests.filter((r) => r.key === 'a__a-1').slice(0, 4);
    for (const [n, refused] of tries.slice(0, 3).entries()) {
      expect(tries[n + 1]!.at - refused.at).toBeGreaterThanOrEqual(2000);
      // What had left before the refusal came back may still arrive; nothing leaves in the two seconds after.
      const meanwhile = bench.server.requests.filter(
        (r) => r.at > refused.at + 1000 && r.at < refused.at + 1990,
      );
      expect(meanwhile.map((r) => r.key)).toEqual([]);
    }
    const [times] = bench.query<{ waited: number }>(
      'SELECT max(elapsed_ms - working_ms) AS waited FROM attempts',
    );
    expect(times!.waited).toBeGreaterThanOrEqual(6_000);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-02 429 for ever is infra, left out of the predictions, and only it runs again when asked', async () => {
    bench = await faultBench({
      scripts: { 'a__a-1': [{ status: 429, body: { error: { message: 'slow down please' } } }] },
      // Without patience for rate limits they count as any other failure does.
      model: { retry: { base_delay_ms: 1, max_delay_ms: 5, max_retries: 2, max_retry_after_s: 0 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    expect(result.stderr).toContain(`resume ${bench.id} --retry infra`);
    expect(bench.trials(bench.id)[0]).toMatchObject({
      exit_reason: 'model_unavailable',
      exit_class: 'infra',
    });
    expect(
      bench.query<{ error_message: string }>(
        `SELECT error_message FROM attempts WHERE exit_reason = 'model_unavailable'`,
      )[0]!.error_message,
    ).toMatch(/rate limited \(429\) after 3 tries.*slow down please/);
    expect(Object.keys(bench.preds(bench.id))).toEqual(['a__a-2', 'a__a-3', 'a__a-4']);
    // Two attempts of three tries each.
    expect(bench.server.count('a__a-1')).toBe(6);
    bench.server.setScript('a__a-1', GOOD);
    const before = bench.server.requests.length;
    const again = await bench.resume(bench.id, ['--retry', 'infra']);
    expect(again.code).toBe(0);
    expect(bench.server.requests.length - before).toBe(3);
    expect(Object.keys(bench.preds(bench.id)).length).toBe(4);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result, again]);
  });

  test('T-08 a refused key stops the whole run at once, without the key in any text', async () => {
    bench = await faultBench({
      inTrees: true,
      scripts: Object.fromEntries(
        [1, 2, 3, 4].map((n) => [
          `a__a-${n}`,
          [{ status: 401, body: { error: { message: `bad key ${CANARY}`, code: 'invalid_api_key' } } }],
        ]),
      ),
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(2);
    // Five seconds, with slack for a busy machine.
    expect(performance.now() - bench.server.requests[0]!.at).toBeLessThan(30_000);
    expect(result.stderr).toMatch(/authentication failed \(401\) for model fake-1 .*check \$FAKE_KEY/);
    expect(bench.trials(bench.id).map((t) => t.exit_class)).toEqual([null, null, null, null]);
    expect(bench.trials(bench.id).map((t) => t.not_run_reason)).toEqual(Array(4).fill('auth_failed'));
    expect(bench.server.requests.length).toBeLessThanOrEqual(2);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('a refused parameter stops the whole run at its first call, with the parameter and what to do', async () => {
    const refused = {
      status: 400,
      body: {
        error: {
          message: "Unsupported parameter: 'temperature' is not supported with this model.",
          type: 'invalid_request_error',
          param: 'temperature',
          code: 'unsupported_parameter',
        },
      },
    };
    bench = await faultBench({
      inTrees: true,
      scripts: Object.fromEntries([1, 2, 3, 4].map((n) => [`a__a-${n}`, [refused]])),
      model: { model_kwargs: { temperature: 0 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(
      /temperature rejected \(400\) by \S+ for model fake-1 — set model\.model_kwargs\.temperature to a value/,
    );
    expect(bench.trials(bench.id).map((t) => t.exit_class)).toEqual([null, null, null, null]);
    expect(bench.trials(bench.id).map((t) => t.not_run_reason)).toEqual(Array(4).fill('config_invalid'));
    // One for each slot at most: nothing starts after the first answer.
    expect(bench.server.requests.length).toBeLessThanOrEqual(2);
    await expectSound(bench, bench.id, 4, [result]);
  });

  const REJECTED = { status: 400, body: { error: { message: 'I do not like this request' } } };

  test('requests that are rejected alike stop the run at the second instance, and it goes on once that is mended', async () => {
    bench = await faultBench({
      inTrees: true,
      scripts: Object.fromEntries([1, 2, 3, 4].map((n) => [`a__a-${n}`, [REJECTED]])),
      config: { workers: 1 },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(
      /the first requests of 2 instances ended alike, so every other would: request rejected \(400\) by \S+: I do not like this request; change what it names/,
    );
    expect(bench.server.requests.length).toBe(2);
    expect(bench.query('SELECT exit_reason, exit_class FROM attempts')).toEqual(
      Array(2).fill({ exit_reason: 'model_rejected', exit_class: 'infra' }),
    );
    expect(bench.trials(bench.id).map((t) => t.not_run_reason)).toEqual(Array(4).fill('config_invalid'));
    for (const n of [1, 2, 3, 4]) bench.server.setScript(`a__a-${n}`, GOOD);
    const again = await bench.resume(bench.id);
    expect(again.code).toBe(0);
    expect(bench.trials(bench.id).map((t) => t.exit_reason)).toEqual(Array(4).fill('submitted'));
    await expectSound(bench, bench.id, 4, [result, again]);
  });

  test('an instance whose request alone is rejected is not asked for a third time, and stops nobody', async () => {
    bench = await faultBench({ inTrees: true, scripts: { 'a__a-1': [REJECTED] }, config: { workers: 1 } });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    expect(bench.server.count('a__a-1')).toBe(2);
    expect(bench.trials(bench.id)[0]).toMatchObject({ exit_reason: 'model_rejected', exit_class: 'infra' });
    expectOthersGood(bench, bench.id);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-10 a full context window is a limit, not retried, and the work is captured', async () => {
    bench = await faultBench({
      scripts: {
        'a__a-1': [
          bash('echo done >> README.md'),
          {
            status: 400,
            body: {
              error: {
                message: "This model's maximum context length is 8192 tokens",
                code: 'context_length_exceeded',
              },
            },
          },
        ],
      },
    });
    const result = await bench.run(bench.id, ['-c', 'run.patch=submitted-else-captured']);
    expect(result.code).toBe(0);
    expect(bench.trials(bench.id)[0]).toMatchObject({
      exit_reason: 'context_window_exceeded',
      exit_class: 'limit',
    });
    expect(bench.server.count('a__a-1')).toBe(2);
    expect(bench.preds(bench.id)['a__a-1']!.model_patch).toContain('+done');
    expectOthersGood(bench, bench.id);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-07 cut bodies, HTML and error objects in a 200 are retried and named', async () => {
    bench = await faultBench({
      inTrees: true,
      scripts: {
        'a__a-1': [{ ...asReply(GOOD[0]), before: [{ content: 'x', cut: true }] }, ...GOOD.slice(1)],
        'a__a-2': [{ ...asReply(GOOD[0]), before: [{ html: true }] }, ...GOOD.slice(1)],
        'a__a-3': [
          { ...asReply(GOOD[0]), before: [{ body: { error: { message: 'overloaded', code: 500 } } }] },
          ...GOOD.slice(1),
        ],
        'a__a-4': [{ ...asReply(GOOD[0]), before: [{ content: 'x', half: true }] }, ...GOOD.slice(1)],
      },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(bench.server.requests.length).toBe(4 * 3 + 4);
    const texts = bench
      .query<{ error_message: string }>(
        `SELECT error_message FROM model_calls WHERE state = 'failed' ORDER BY error_message`,
      )
      .map((r) => r.error_message);
    expect(texts).toEqual([
      expect.stringContaining('error object in 200'),
      expect.stringContaining('non-JSON 502'),
      expect.stringMatching(/truncated body: connection lost after \d+ bytes/),
      expect.stringMatching(/truncated body: the JSON ends after \d+ characters/),
    ]);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });
});

function asReply(entry: (typeof GOOD)[number] | undefined): { content: string } {
  return typeof entry === 'string' ? { content: entry } : { content: '' };
}
