// Which version of an agent an arm means, and what keeps it from working, said before anything starts.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentConfigSchema } from '../../../src/agent/agentConfig.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { modelConfigSchema } from '../../../src/model/modelConfig.ts';
import { agentCacheDir, saveManifest } from '../../../src/run/agents/agentCache.ts';
import { agentProblem, armProgram, withVersion } from '../../../src/run/agents/armAgent.ts';

const arm = (
  agent: Record<string, unknown>,
  model: Record<string, unknown> = {
    model_name: 'gpt-5',
    base_url: 'http://127.0.0.1:1',
    dialect: 'responses',
  },
  environment: Record<string, unknown> = {},
) => ({
  agent: agentConfigSchema.parse(agent),
  model: modelConfigSchema.parse(model),
  environment: environmentConfigSchema.parse(environment),
});

async function machine(...versions: string[]) {
  const dir = mkdtempSync(join(tmpdir(), 'arm-'));
  const env = { HOME: dir };
  for (const version of versions)
    await saveManifest(agentCacheDir(env), {
      ...{ format: 1, agent: 'codex', version, architecture: 'amd64', addedAt: '2026-01-01T00:00:00Z' },
      variants: [{ libc: null, packages: [] }],
    });
  return env;
}

describe('the agent of an arm', () => {
  test('without a version is the one that was added, and the arm says so', async () => {
    const env = await machine('0.169.0');
    const pinned = withVersion(arm({ agent_class: 'codex' }), env);
    expect(pinned.agent.agent_class).toBe('codex@0.169.0');
    expect(await agentProblem(pinned, env)).toBe(null);
    expect(armProgram({ agent_class: 'codex@0.169.0' }, env)?.name).toBe('codex@0.169.0');
  });

  test('stays as it is where several were added, or none, and that is a problem', async () => {
    const several = await machine('0.169.0', '0.168.0');
    const codex = arm({ agent_class: 'codex' });
    expect(withVersion(codex, several).agent.agent_class).toBe('codex');
    expect((await agentProblem(codex, several))?.message).toBe(
      'codex was added in several versions: codex@0.168.0, codex@0.169.0',
    );
    expect(await agentProblem(arm({ agent_class: 'codex@1.0.0' }), several)).toEqual({
      message: 'codex@1.0.0 was not added',
      fix: 'swebatch agents add codex@1.0.0',
    });
    expect((await agentProblem(codex, await machine()))?.fix).toBe('swebatch agents add codex@VERSION');
  });

  test('must speak as its model is asked, and needs a provider and a container', async () => {
    const env = await machine('0.169.0');
    const codex = { agent_class: 'codex@0.169.0' };
    const problem = async (...given: Parameters<typeof arm>) =>
      (await agentProblem(arm(...given), env))?.message;
    expect(await problem(codex, { model_name: 'm', base_url: 'http://127.0.0.1:1' })).toBe(
      'codex@0.169.0 speaks responses, and the model is asked in chat',
    );
    expect(await problem(codex, { model_name: 'scripted:x.json' })).toMatch(/asks a provider/);
    expect(await problem(codex, undefined, { environment_class: 'local' })).toBe(
      'codex@0.169.0 works in Docker and Kubernetes, and not in local',
    );
    expect(await problem(codex, undefined, { environment_class: 'kubernetes' })).toBe(undefined);
    expect(
      (await agentProblem(arm(codex, { model_name: 'm', base_url: 'http://127.0.0.1:1' }), env))?.fix,
    ).toBe('set model.dialect: responses where the provider speaks it too, or gateway.translate: true');
    const chat = arm(codex, { model_name: 'm', base_url: 'http://127.0.0.1:1' });
    const gateway = { models: {}, provider_tools: 'strip', translate: true } as const;
    expect(await agentProblem({ ...chat, gateway }, env)).toBe(null);
    expect(await problem({ agent_class: 'command' })).toBe('agent_class command needs a shell line');
    expect(
      await problem({ agent_class: 'command', command: 'x' }, undefined, { environment_class: 'local' }),
    ).toBe(undefined);
    expect(await problem({})).toBe(undefined);
  });
});
