// Money (T-18 to T-22) through the whole program: what a call costs, what nobody knows, and where a limit stops.
import { afterEach, describe, expect, test } from 'vitest';
import { dockerAvailable } from '../support/docker.ts';
import type { Directive, Script } from '../support/fakeAnswer.ts';
import { type Bench, bash, expectOthersGood, expectSound, faultBench, GOOD, SUBMIT } from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const calls = (id: string) =>
  bench.query<{ cost_nano: number | null; usage: string | null; notes: string; estimate_nano: number }>(
    `SELECT c.* FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id
     JOIN instances i ON i.id = t.instance_pk WHERE i.instance_id = '${id}' ORDER BY c.id`,
  );

describe.skipIf(!docker)('money', () => {
  test('T-18 cached, written for five minutes and for an hour, reasoning: equal to the sum by hand, and the raw usage is kept', async () => {
    const usage = {
      prompt_tokens: 10_000,
      completion_tokens: 700,
      prompt_tokens_details: { cached_tokens: 4_000 },
      completion_tokens_details: { reasoning_tokens: 300 },
      cache_creation_input_tokens: 1_500,
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 500 },
    };
    bench = await faultBench({
      inTrees: true,
      scripts: { 'a__a-1': [{ content: GOOD[0] as string, usage }, ...GOOD.slice(1)] },
      model: { prices: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    const [first] = calls('a__a-1');
    // Dollars: 4500 plain in, 4000 read, 1000 written for five minutes, 500 for an hour (twice the input), 700 out.
    const byHand = (4500 * 3 + 4000 * 0.3 + 1000 * 3.75 + 500 * 6 + 700 * 15) / 1e6;
    expect(Math.abs(first!.cost_nano! / 1e9 - byHand)).toBeLessThan(1e-9);
    expect(JSON.parse(first!.usage!)).toEqual(usage);
    expect(
      bench.query(
        'SELECT input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens FROM model_calls WHERE cache_read_tokens > 0',
      ),
    ).toEqual([
      {
        input_tokens: 4500,
        cache_read_tokens: 4000,
        cache_write_tokens: 1500,
        output_tokens: 700,
        reasoning_tokens: 300,
      },
    ]);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-19 usage that is missing or nonsense is a cost nobody knows: never 0, never negative, totals say "at least"', async () => {
    const with_ = (usage: unknown): Script => [{ content: GOOD[0] as string, usage }, ...GOOD.slice(1)];
    bench = await faultBench({
      inTrees: true,
      scripts: {
        'a__a-1': with_(null),
        'a__a-2': with_({ prompt_tokens: -5, completion_tokens: 3 }),
        'a__a-3': with_({ prompt_tokens: 'ten', completion_tokens: '3' }),
        'a__a-4': with_({
          prompt_tokens: 10,
          completion_tokens: 3,
          prompt_tokens_details: { cached_tokens: 99 },
        }),
      },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    for (const id of ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4']) {
      const [odd, next] = calls(id);
      expect(odd!.cost_nano).toBeNull();
      expect(odd!.notes).toMatch(/usage (missing|unusable)/);
      expect(odd!.estimate_nano).toBeGreaterThan(0);
      expect(next!.cost_nano).toBe(20_000);
    }
    expect(result.stderr).toMatch(/agent 4 · ≥ \$0\.00016/);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  // 0.4 dollars: 200000 prompt and 100000 completion tokens at 1 and 2 dollars per million.
  const DEAR = { prompt_tokens: 200_000, completion_tokens: 100_000 };
  const dear = (content: string): Directive => ({ content, usage: DEAR });

  test('T-21 an instance limit of a dollar at 0.40 a call ends after one call beyond it at most; malformed replies count too [M-17]', async () => {
    bench = await faultBench({
      inTrees: true,
      scripts: {
        'a__a-1': [dear(bash('true'))],
        'a__a-2': [dear('no command'), dear(bash('true')), dear('no command'), dear(bash('true'))],
      },
      agent: { cost_limit: 1 },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    for (const id of ['a__a-1', 'a__a-2']) {
      expect(bench.trials(bench.id).find((t) => t.instance_id === id)).toMatchObject({
        exit_reason: 'limit_cost',
        exit_class: 'limit',
      });
      expect(bench.server.count(id)).toBe(3);
      expect(calls(id).map((c) => c.cost_nano)).toEqual([0.4e9, 0.4e9, 0.4e9]);
    }
    expectOthersGood(bench, bench.id, ['a__a-1', 'a__a-2']);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-22 the run budget stops starting, marks the rest not run, and more money goes on with exactly those [M-64, T-66]', async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `b__b-${String(i + 1).padStart(2, '0')}`);
    // 0.2 dollars a call: 100000 prompt and 50000 completion tokens at 1 and 2 dollars per million.
    const script = [{ content: SUBMIT, usage: { prompt_tokens: 100_000, completion_tokens: 50_000 } }];
    bench = await faultBench({
      inTrees: true,
      ids,
      scripts: Object.fromEntries(ids.map((id) => [id, script])),
    });
    const result = await bench.run(bench.id, ['--cost-limit', '1', '-w', '8']);
    expect(result.code).toBe(4);
    const spent = bench.query<{ nano: number }>('SELECT sum(cost_nano) AS nano FROM model_calls')[0]!.nano;
    expect(spent).toBeLessThanOrEqual((1 + 8 * 0.2) * 1e9);
    const finished = bench.trials(bench.id).filter((t) => t.exit_class === 'agent').length;
    expect(result.stderr).toContain(
      `run budget $1.00 reached: ${finished} finished, ${20 - finished} not run`,
    );
    expect(
      bench
        .trials(bench.id)
        .filter((t) => t.exit_class === null)
        .every((t) => t.not_run_reason === 'budget_stopped'),
    ).toBe(true);
    expect(bench.server.requests.length).toBe(finished);
    const more = await bench.resume(bench.id, ['--cost-limit', '100']);
    expect(more.code).toBe(0);
    expect(bench.server.requests.length).toBe(20);
    expect(bench.query<{ data: string }>(`SELECT data FROM events WHERE type = 'limit_changed'`)).toEqual([
      { data: '{"changed":[{"key":"run.cost_limit","was":1,"is":100}]}' },
    ]);
    await expectSound(bench, bench.id, 20, [result, more]);
  });

  test('calls that reserve more than they cost wait for each other, and end no run whose budget is not spent [T-22]', async () => {
    // 3.3 dollars are reserved for a call that costs next to nothing: two fit into the budget, four slots ask at a time.
    bench = await faultBench({
      inTrees: true,
      model: { prices: { input: 1, output: 100 }, model_kwargs: { max_tokens: 32_768 } },
      config: { workers: 4 },
    });
    const result = await bench.run(bench.id, ['--cost-limit', '7']);
    expect(result.code, result.stderr).toBe(0);
    expect(bench.server.requests.length).toBe(12);
    const [{ spent }] = bench.query<{ spent: number }>('SELECT sum(cost_nano) AS spent FROM model_calls') as [
      { spent: number },
    ];
    expect(spent).toBeLessThan(1e9);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('a model without a price runs with cost_tracking: ignore_errors; its cost is unknown and never 0 [M-59]', async () => {
    bench = await faultBench({ inTrees: true, prices: false, ids: ['a__a-1'] });
    const result = await bench.run(bench.id, [
      ...['-m', 'nobody/knows-this', '--cost-limit', '1', '-c', 'model.cost_tracking=ignore_errors'],
    ]);
    expect(result.code).toBe(0);
    expect(
      bench.query(`SELECT count(*) AS calls, count(cost_nano) AS known FROM model_calls WHERE state = 'ok'`),
    ).toEqual([{ calls: 3, known: 0 }]);
    expect(result.stderr).toMatch(/≥ \$0\.00/);
  });

  test('T-20 a paid model without a price is refused before any container or call [M-59]', async () => {
    bench = await faultBench({ inTrees: true, prices: false });
    const result = await bench.run(bench.id, ['-m', 'nobody/knows-this', '--cost-limit', '1']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('no price for "nobody/knows-this"; add prices:');
    expect(bench.server.requests.length).toBe(0);
  });
});
