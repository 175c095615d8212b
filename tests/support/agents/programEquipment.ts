// A real program with instructions, a skill that brings a server of tools, and a parameter of its arm.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { tempDir } from '../cli.ts';
import { type AgentUnderTest, agentBench, solve } from './agentBench.ts';
import { startFakeProvider } from './playedProvider.ts';
import { CALLS, SERVER } from './programServers.ts';

const ID = 'swebatch__tabular-23';
const INSTRUCTIONS = 'Always speak of the walrus.';
const DESCRIPTION = 'How tickets are looked up in the zebra office.';

export async function hasEquipment(one: AgentUnderTest): Promise<void> {
  const own = tempDir('equipment-');
  mkdirSync(join(own, 'skills', 'tickets'), { recursive: true });
  writeFileSync(join(own, 'AGENTS.md'), `${INSTRUCTIONS}\n`);
  writeFileSync(
    join(own, 'skills', 'tickets', 'SKILL.md'),
    `---\nname: tickets\ndescription: ${DESCRIPTION}\n---\n\nCall look_up.\n`,
  );
  writeFileSync(join(own, 'skills', 'tickets', 'server.py'), SERVER);
  await using provider = await startFakeProvider(({ body }, results) => {
    if (results === 0) return { ...CALLS[one.agent], args: { ticket: 'abc' } };
    if (results > 1) return { say: 'Done.' };
    const asked = JSON.stringify(body);
    return one.runs(asked.includes('word-cba-42') ? solve(ID) : 'false');
  });
  const bench = agentBench({
    ...{ ids: [ID], url: provider.url, dialect: one.dialect, grading: true },
    agent: {
      ...{ agent_class: one.agent, instructions: join(own, 'AGENTS.md'), skills: join(own, 'skills') },
      mcp_servers: [
        {
          ...{ name: 'tickets', transport: 'stdio', command: 'python3' },
          args: ['/opt/swebatch-equipment/skills/tickets/server.py'],
        },
      ],
    },
    modelKwargs: { temperature: 0.25 },
  });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(bench.query('SELECT exit_reason FROM attempts')).toEqual([{ exit_reason: 'submitted' }]);
  expect(bench.query('SELECT outcome FROM evaluations')).toEqual([{ outcome: 'resolved' }]);
  const asked = provider.requests.map(({ body }) => JSON.stringify(body));
  expect(asked.some((text) => text.includes(INSTRUCTIONS))).toBe(true);
  expect(asked.some((text) => text.includes(DESCRIPTION))).toBe(true);
  expect(asked.every((text) => text.includes('"temperature":0.25'))).toBe(true);
  // Nothing of it is in the patch.
  const [{ model_patch: patch }] = bench.query<{ model_patch: string }>(
    'SELECT model_patch FROM attempts',
  ) as [{ model_patch: string }];
  expect(patch).not.toMatch(/walrus|zebra|tickets/);
  const notes = bench.query<{ notes: string }>('SELECT notes FROM model_calls');
  for (const row of notes) expect(row.notes).toContain("set by model_kwargs over the program's own: ");
}
