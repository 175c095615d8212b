// Claude Code with two sub-agents at once, again with the provider off: each request is matched in its own conversation, however the two interleave.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AGENTS, addedFromNpm, agentBench, solve } from '../support/agents/agentBench.ts';
import { type SeenRequest, startFakeProvider, type Turn } from '../support/agents/playedProvider.ts';
import { dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const claude = AGENTS.find(({ agent }) => agent === 'claude-code')!;
const ID = 'swebatch__tabular-23';
/** Output that is another in every run, of the kinds that count as equal. */
const CHANGING = `date; python3 -c 'import time, uuid, tempfile; print(time.time(), uuid.uuid4(), tempfile.mkdtemp())'; ls -la`;
const TIMES = Number(process.env.SWEBATCH_TEST_REPLAYS ?? 3);

const agentTool = ({ body }: SeenRequest): string => {
  const names = (body.tools as { name: string }[]).map(({ name }) => name);
  return names.includes('Task') ? 'Task' : 'Agent';
};
const asks = (n: number) => ({
  description: `look ${n}`,
  prompt: `You are helper number ${n}. Look around.`,
  subagent_type: 'general-purpose',
  run_in_background: false,
});

/** Both sub-agents in one turn. */
function bothAtOnce(tool: string): string {
  const usage = { input_tokens: 1000, output_tokens: 50 };
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const block = (index: number) =>
    event('content_block_start', {
      index,
      content_block: { type: 'tool_use', id: `toolu_agent_${index}`, name: tool, input: {} },
    }) +
    event('content_block_delta', {
      index,
      delta: { type: 'input_json_delta', partial_json: JSON.stringify(asks(index + 1)) },
    }) +
    event('content_block_stop', { index });
  const message = { id: 'msg_both', type: 'message', role: 'assistant', model: 'fake-1', content: [], usage };
  return (
    event('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } }) +
    block(0) +
    block(1) +
    event('message_delta', { delta: { stop_reason: 'tool_use', stop_sequence: null }, usage }) +
    event('message_stop', {})
  );
}

test.skipIf(!available)('leads to the same patch each time', { timeout: 1_200_000 }, async (context) => {
  const missing = await addedFromNpm(claude);
  if (missing) return context.skip(missing);
  const helper = ({ body }: SeenRequest) =>
    /You are helper number (\d)/.exec(JSON.stringify(body.messages))?.[1];
  const isHelper = (seen: SeenRequest) => seen.headers['x-claude-code-agent-id'] !== undefined;
  const turn = (seen: SeenRequest, results: number): Turn | undefined => {
    if (isHelper(seen)) {
      if (results < 2) return claude.runs(`echo helper ${helper(seen)} step ${results}; ${CHANGING}`);
      return { say: `Helper ${helper(seen)} has looked.` };
    }
    return results === 2 ? claude.runs(solve(ID)) : undefined;
  };
  await using provider = await startFakeProvider(turn, async (seen, response, { results, aside }) => {
    // The two interleave in another way each time.
    await sleep(Math.random() * 300);
    if (aside || isHelper(seen) || results > 0) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bothAtOnce(agentTool(seen)));
    return true;
  });
  const bench = agentBench({
    ...{ ids: [ID], url: provider.url, dialect: claude.dialect },
    agent: { agent_class: claude.agent, wall_time_limit_seconds: 240 },
  });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  const threads = bench
    .query<{ thread: string }>('SELECT DISTINCT thread FROM program_calls')
    .map((r) => r.thread);
  expect(threads.filter((name) => !/^(main|title)/.test(name))).toHaveLength(2);
  const asked = provider.requests.length;
  for (let time = 1; time <= TIMES; time++) {
    const again = await bench.replay(`${bench.id}-${time}`);
    expect(again.code, again.stderr).toBe(0);
  }
  expect(provider.requests).toHaveLength(asked);
  const attempts = bench.query<Record<string, unknown>>(
    'SELECT exit_reason, error_message, steps, model_patch FROM attempts ORDER BY id',
  );
  expect(attempts).toHaveLength(1 + TIMES);
  for (const attempt of attempts) expect(attempt).toEqual(attempts[0]);
  expect(attempts[0]).toMatchObject({ exit_reason: 'submitted', error_message: null });
  expect(String(attempts[0]!.model_patch)).toMatch(/^diff --git/);
});
