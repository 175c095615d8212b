// The real programs again with the provider off: every request is answered from the record, and the patch is the same to the byte.
import { describe, expect, test } from 'vitest';
import { AGENTS, addedFromNpm, agentBench, solve } from '../support/agents/agentBench.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const tested = AGENTS.filter(
  ({ agent }) => agent !== 'claude-code' || process.env.SWEBATCH_TEST_CLAUDE_CODE === '1',
);
const ID = 'swebatch__tabular-23';
/** Output that is another in every run, of the kinds that count as equal. */
const CHANGING = `ls -la; date; python3 -c 'import time, uuid, tempfile; print(time.time(), uuid.uuid4(), tempfile.mkdtemp())'`;

describe.skipIf(!available).each(tested)('$agent (needs Docker and npm)', (one) => {
  test('leads to the same patch, at the same cost, from the record alone', async (context) => {
    const missing = await addedFromNpm(one);
    if (missing) return context.skip(missing);
    const { agent, dialect, runs } = one;
    const turns = [runs(CHANGING), runs(solve(ID)), runs('git diff --stat')];
    const provider = await startFakeProvider([...turns, { say: 'It is done.' }]);
    const agentClass = { agent_class: agent, wall_time_limit_seconds: 120 };
    const bench = agentBench({ ids: [ID], url: provider.url, dialect, agent: agentClass });
    const done = await bench.run();
    await provider[Symbol.asyncDispose]();
    expect(done.code, done.stderr).toBe(0);
    const again = await bench.replay();
    expect(again.code, again.stderr).toBe(0);

    const attempts = bench.query<Record<string, unknown>>(
      'SELECT exit_reason, error_message, steps, model_patch FROM attempts ORDER BY id',
    );
    expect(attempts).toHaveLength(2);
    expect(attempts[0]).toMatchObject({ exit_reason: 'submitted', error_message: null });
    expect(String(attempts[0]!.model_patch)).toMatch(/^diff --git/);
    expect(attempts[1]).toEqual(attempts[0]);
    const money = bench.query<{ calls: number; cost: number; notes: string }>(
      'SELECT count(*) AS calls, sum(cost_nano) AS cost, min(notes) AS notes FROM model_calls GROUP BY attempt_id ORDER BY attempt_id',
    );
    expect(money[1]).toMatchObject({ calls: money[0]!.calls, cost: money[0]!.cost });
    expect(money[1]!.notes).toContain('replayed: nothing was paid');
    const verified = await cli(['verify', `${bench.id}-again`, '-o', bench.out]);
    expect(verified.code, verified.stdout).toBe(0);
  }, 300_000);
});
