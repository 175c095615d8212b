// A real program and an MCP server in the image of its task.

import { join } from 'node:path';
import { expect } from 'vitest';
import { tempDir } from '../cli.ts';
import { derivedImage } from '../dockerEnvironment.ts';
import { harborTask } from '../kinds/harborTask.ts';
import { type AgentUnderTest, agentBench } from './agentBench.ts';
import { startFakeProvider, type Turn } from './playedProvider.ts';

/** How each of them calls the tool look_up of the server tickets. */
export const CALLS: Readonly<
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
  const said = bench.query<{ data: string }>('SELECT data FROM message_texts').map(({ data }) => data);
  for (const [name, [, word]] of Object.entries(TICKETS))
    expect(said.some((data) => data.includes(`"task_step":"${name}"`) && data.includes(word))).toBe(true);
}

// A Harbor task of two steps whose image holds an MCP server (stdio): its one tool tells words that stand nowhere else, which the tests want.
/** It is made when the tool is called, so that no search of files finds it. */
export const SERVER = `import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "tickets", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "look_up", "description": "Tells the word of a ticket.", "inputSchema": {"type": "object", "properties": {"ticket": {"type": "string"}}, "required": ["ticket"]}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "word-" + asked["params"]["arguments"]["ticket"][::-1] + "-" + str(6 * 7)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
`;

/** The tickets of the steps, and what the tool answers for each. */
const TICKETS = { first: ['abc', 'word-cba-42'], second: ['xyz', 'word-zyx-42'] } as const;

async function mcpTask(tasks: string): Promise<void> {
  const image = await derivedImage(
    `mkdir -p /work /srv; cat > /srv/tickets.py <<'SERVER'\n${SERVER}SERVER\n`,
  );
  harborTask(tasks, 'asks-a-server', {
    'task.toml': `[environment]
docker_image = "${image}"
workdir = "/work"
network_mode = "no-network"
[[environment.mcp_servers]]
name = "tickets"
transport = "stdio"
command = "python3"
args = ["/srv/tickets.py"]
${Object.keys(TICKETS)
  .map((name) => `[[steps]]\nname = "${name}"\nmin_reward = 1\n`)
  .join('')}`,
    ...{ 'instruction.md': null, 'tests/test.sh': null },
    ...Object.fromEntries(
      Object.entries(TICKETS).flatMap(([name, [ticket, word]]) => [
        [
          `steps/${name}/instruction.md`,
          `Ask for the word of ticket ${ticket}, and write it to answer.txt.\n`,
        ],
        [
          `steps/${name}/tests/test.sh`,
          `#!/bin/bash\ngrep -qx "${word}" answer.txt && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n`,
        ],
      ]),
    ),
  });
}
