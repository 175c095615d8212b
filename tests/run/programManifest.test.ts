// The manifest of an arm whose agent is a program: it names what the program was given, and nothing that only the built-in agent has.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cli } from '../support/cli.ts';
import { localRun } from './localRun.ts';

interface Manifest {
  readonly templates: Record<string, Record<string, { text: string }>>;
  readonly models: Record<string, { parameters: unknown; cache_control: unknown; asked: string }>;
  readonly config: { arms: { agent: Record<string, unknown> }[] };
}

const server = createServer((_request, response) => response.writeHead(500).end());
beforeAll(() => new Promise<void>((done) => void server.listen(0, '127.0.0.1', done)));
afterAll(() => void server.close());

async function manifestOf(agent: readonly string[]): Promise<Manifest> {
  const model = {
    model_name: 'm',
    base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    retry: { max_retries: 0 },
  };
  const { out, args } = localRun({ model });
  const started = await cli([...args, '-c', 'agent.protocol=tool-call', ...agent], {
    env: { OPENAI_API_KEY: 'sk-canary-0123456789' },
  });
  const shown = await cli(['show', 'r', '--manifest', '-o', out]);
  expect(shown.code, started.stderr).toBe(0);
  return JSON.parse(shown.stdout) as Manifest;
}

test('a program has the prompt that it was given, and neither our templates nor our tool', async () => {
  const manifest = await manifestOf(['-c', 'agent.agent_class=command', '-c', 'agent.command=echo']);
  const [arm] = Object.keys(manifest.templates) as [string];
  expect(Object.keys(manifest.templates[arm]!)).toEqual(['prompt']);
  expect(manifest.templates[arm]!.prompt!.text).toContain('Resolve this issue');
  expect(manifest.models[arm]).toMatchObject({ asked: 'm', parameters: null, cache_control: null });
  const { agent } = manifest.config.arms[0]!;
  expect(agent).toMatchObject({ agent_class: 'command', command: 'echo', cost_limit: 3 });
  const text = JSON.stringify(manifest);
  for (const word of [
    'helpful assistant',
    'triple backticks',
    'single shell command',
    '"tools"',
    'action_regex',
  ])
    expect(text).not.toContain(word);
});

test('the built-in agent has its templates and its tool', async () => {
  const manifest = await manifestOf([]);
  const [arm] = Object.keys(manifest.templates) as [string];
  expect(Object.keys(manifest.templates[arm]!)).toContain('system');
  expect(JSON.stringify(manifest.models[arm]!.parameters)).toContain('"bash"');
  expect(manifest.config.arms[0]!.agent).toHaveProperty('action_regex');
});
