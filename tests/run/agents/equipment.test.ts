// What an arm gives its agent: read, hashed into what the run is, refused with the reason where it cannot be had.
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type AgentConfig, agentConfigSchema } from '../../../src/agent/agentConfig.ts';
import { agentProblem } from '../../../src/run/agents/armAgent.ts';
import { armEquipment, equipmentFacts, withEquipment } from '../../../src/run/agents/equipment.ts';
import { tempDir } from '../../support/cli.ts';

const SKILL = '---\nname: tidy\ndescription: >\n  How to tidy.\n  For every file.\n---\n\nSweep.\n';

function folder(files: Readonly<Record<string, string>>): string {
  const root = tempDir('equipment-');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const agent = (more: Partial<AgentConfig>): AgentConfig => agentConfigSchema.parse(more);
const hashOf = (more: Partial<AgentConfig>, cwd: string): string | undefined =>
  withEquipment({ agent: agent(more) }, cwd).agent.skills_sha256;

describe('skills', () => {
  test('are the folders that hold a SKILL.md, with the description that it begins with', () => {
    const cwd = folder({ 's/tidy/SKILL.md': SKILL, 's/tidy/scripts/sweep.sh': '#!/bin/sh\n', 's/NOTES': '' });
    chmodSync(join(cwd, 's/tidy/scripts/sweep.sh'), 0o755);
    const { skills, instructions } = armEquipment(agent({ skills: 's' }), cwd)!;
    expect(instructions).toBe(null);
    expect(skills!.map(({ name, description }) => [name, description])).toEqual([
      ['tidy', 'How to tidy. For every file.'],
    ]);
    expect(skills![0]!.files.map(({ path, executable }) => [path, executable])).toEqual([
      ['SKILL.md', false],
      ['scripts/sweep.sh', true],
    ]);
  });

  test('may be one, whose folder is named', () => {
    const cwd = folder({ 'tidy/SKILL.md': SKILL });
    expect(armEquipment(agent({ skills: 'tidy' }), cwd)!.skills!.map(({ name }) => name)).toEqual(['tidy']);
  });

  test('are named by the hash of their files, whatever the folder is called and what a checkout leaves in it', () => {
    const cwd = folder({ 'a/tidy/SKILL.md': SKILL, 'b/tidy/SKILL.md': SKILL, 'b/.git/HEAD': 'x' });
    expect(hashOf({ skills: 'a' }, cwd)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashOf({ skills: 'b' }, cwd)).toBe(hashOf({ skills: 'a' }, cwd));
    writeFileSync(join(cwd, 'b/tidy/SKILL.md'), `${SKILL}Twice.\n`);
    expect(hashOf({ skills: 'b' }, cwd)).not.toBe(hashOf({ skills: 'a' }, cwd));
  });

  test('that have changed since the run was recorded are refused', () => {
    const cwd = folder({ 's/tidy/SKILL.md': SKILL });
    const recorded = withEquipment({ agent: agent({ skills: 's' }) }, cwd).agent;
    writeFileSync(join(cwd, 's/tidy/SKILL.md'), `${SKILL}Twice.\n`);
    expect(() => armEquipment(recorded, cwd)).toThrow(
      /^agent\.skills: its files are not those of agent\.skills_sha256 .*put them back/,
    );
  });

  test.each([
    [{ 's/README': '' }, /holds no skill/],
    [{ 's/tidy/SKILL.md': 'Sweep.\n' }, /tidy\/SKILL\.md has no description/],
    [{ 's/ti dy/SKILL.md': SKILL }, /the folder "ti dy" cannot name a skill/],
    [{}, /cannot be read: there is no such file/],
  ] as const)('of %j are refused', (files, says) => {
    expect(() => armEquipment(agent({ skills: 's' }), folder(files))).toThrow(says);
  });

  test('are not read through a link', () => {
    const cwd = folder({ 's/tidy/SKILL.md': SKILL });
    symlinkSync('/etc/hostname', join(cwd, 's/tidy/host'));
    expect(() => armEquipment(agent({ skills: 's' }), cwd)).toThrow(
      'agent.skills: "tidy/host" is neither a file nor a folder: copy what it leads to',
    );
  });
});

test('the record says hashes and sizes, and nothing for an arm that gives nothing', () => {
  const cwd = folder({ 's/tidy/SKILL.md': SKILL, 'AGENTS.md': 'Be brief.\n' });
  const facts = equipmentFacts(agent({ skills: 's', instructions: 'AGENTS.md' }), cwd);
  expect(facts).toMatchObject({
    skills: { names: ['tidy'], files: [{ path: 'tidy/SKILL.md', bytes: SKILL.length }] },
    instructions: { bytes: 10, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
  });
  expect(JSON.stringify(facts)).not.toContain(cwd);
  expect(equipmentFacts(agent({}), cwd)).toBe(null);
  expect(armEquipment(agent({}), cwd)).toBe(undefined);
});

test('a line that names the places gets them also in the arm that gives nothing', () => {
  const command = 'mkdir -p ~/.qwen && cp {{ instructions }} ~/.qwen/QWEN.md && qwen -p {{task}}';
  expect(armEquipment(agent({ agent_class: 'command', command }), '/')).toEqual({
    instructions: null,
    skills: null,
  });
});

describe('an arm is refused before anything starts', () => {
  const problem = async (more: Partial<AgentConfig>, network = 'none') =>
    (
      await agentProblem(
        { agent: agent(more), environment: { environment_class: 'docker', network }, model: {} } as never,
        {},
      )
    )?.message;
  const stdio = { name: 'tickets', transport: 'stdio' as const, command: 'python3', args: [] };
  const away = { name: 'web', transport: 'streamable-http', url: 'http://10.0.0.1:8000/mcp' } as const;

  test('where its agent cannot have what it gives', async () => {
    expect(await problem({ agent_class: 'nop', skills: 's' })).toBe('agent.skills has no effect on nop');
    expect(await problem({ agent_class: 'command', command: 'x {{task}}', instructions: 'f' })).toBe(
      'nobody knows where command looks for agent.instructions',
    );
    expect(await problem({ skills: 's', instructions: 'f' })).toBe(undefined);
  });

  test('where its servers of tools cannot run', async () => {
    expect(await problem({ mcp_servers: [stdio] })).toMatch(
      /^it has MCP servers \(tickets\), which the built-in agent does not take; codex, /,
    );
    expect(await problem({ agent_class: 'codex', mcp_servers: [stdio, stdio] })).toBe(
      'agent.mcp_servers has tickets twice',
    );
    expect(await problem({ agent_class: 'codex', mcp_servers: [away] })).toBe(
      'the server web of agent.mcp_servers is at an address that a container without network does not reach',
    );
  });
});
