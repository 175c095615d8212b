// A real program and an MCP server in the image of its task.
import { join } from 'node:path';
import { expect } from 'vitest';
import { tempDir } from '../cli.ts';
import { mcpTask, TICKETS } from '../kinds/mcpTask.ts';
import { type AgentUnderTest, agentBench } from './agentBench.ts';
import { startFakeProvider, type Turn } from './playedProvider.ts';

/** How each of them calls the tool look_up of the server tickets. */
const CALLS: Readonly<
  Record<AgentUnderTest['agent'], Pick<Extract<Turn, { tool: string }>, 'tool' | 'namespace'>>
> = {
  codex: { tool: 'look_up', namespace: 'mcp__tickets' },
  'claude-code': { tool: 'mcp__tickets__look_up' },
  opencode: { tool: 'tickets_look_up' },
  'gemini-cli': { tool: 'mcp_tickets_look_up' },
};

export async function asksServer(one: AgentUnderTest): Promise<void> {
  const tasks = join(tempDir(), 'tasks');
  await mcpTask(tasks);
  await using provider = await startFakeProvider(({ body }, results) => {
    const text = JSON.stringify(body);
    const ticket = /word of ticket (\w+),/.exec(text)?.[1] ?? 'none';
    if (results === 0) return { ...CALLS[one.agent], args: { ticket } };
    const words = new Set(text.match(/word-\w+-42/g));
    // In a conversation that went on the words of both steps would stand.
    if (results === 1) return one.runs(`echo "${[...words].join(' and ')}" > answer.txt`);
    return { say: 'Done.' };
  });
  const bench = agentBench({
    ...{ ids: ['asks-a-server'], subset: tasks, url: provider.url, dialect: one.dialect, grading: true },
    agent: { agent_class: one.agent },
  });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(bench.query('SELECT exit_reason, steps FROM attempts')).toEqual([
    { exit_reason: 'submitted', steps: 6 },
  ]);
  expect(bench.query('SELECT outcome, reward FROM evaluations')).toEqual([
    { outcome: 'resolved', reward: 1 },
  ]);
  const said = bench.query<{ data: string }>('SELECT data FROM messages').map(({ data }) => data);
  for (const [name, [, word]] of Object.entries(TICKETS))
    expect(said.some((data) => data.includes(`"task_step":"${name}"`) && data.includes(word))).toBe(true);
}
