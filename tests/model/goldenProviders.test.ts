// What mini-swe-agent 2.4.6 with the real litellm sent to each provider, request by request: ours is the same under agent.compat.
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { publishedMessages } from '../../src/model/dialects/published/publishedMessages.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { fakeEnvironment, result } from '../agent/fakes.ts';
import { jsonReply, startRawServer } from '../support/rawServer.ts';

const shared = join(import.meta.dirname, '..', '..', '..', 'shared');
const folder = join(shared, 'golden', 'providers');
const read = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);

interface Request {
  path: string;
  headers: Record<string, string>;
  body: unknown;
}
interface Golden {
  model: Record<string, unknown> & { model_name: string; model_kwargs: Record<string, unknown> };
  replies: unknown[];
  commands: string[];
  outputs: { output?: string; returncode?: number; submit?: string }[];
  requests: Request[];
  result: { exit_status: string; submission: string };
  final_messages: Record<string, unknown>[];
  cost: number;
}

const TASK =
  'Dividing by zero is not reported.\n\n`calc(1, 0)` returns `None` {{ not a template }} <b>&amp;</b> é😀\n';

const CASES = [
  ['anthropic-tools', 'sk-ant-golden', 'swebench'],
  ['anthropic-tools-cache', 'sk-ant-golden', 'swebench'],
  ['anthropic-thinking-cache', 'sk-ant-golden', 'swebench'],
  ['anthropic-text-cache', 'sk-ant-golden', 'swebench_backticks'],
  ['responses-tools', 'sk-golden', 'swebench'],
  ['responses-encrypted', 'sk-golden', 'swebench'],
  ['gemini-tools', 'gm-golden', 'swebench'],
  ['deepseek-tools', 'ds-golden', 'swebench'],
  ['vllm-tools', 'k', 'swebench'],
  ['openrouter-litellm', 'or-golden', 'swebench'],
] as const;

/**
 * Where our cost is not litellm's: its table had no such model and it counted 0 (gemini, vllm), or the reply states what it cost, which
 * counts here and not there (openrouter, deepseek).
 */
const PRICED_APART = new Set<string>(['gemini-tools', 'vllm-tools', 'openrouter-litellm', 'deepseek-tools']);

/** Chat's messages are exported as the provider sent them, and not as litellm rewrites them. */
const CHAT = new Set<string>(['deepseek-tools', 'vllm-tools', 'openrouter-litellm']);

/** Without what the recordings left out of their last histories; a cost is a whole number of nano-dollars. */
function compared(message: Record<string, unknown>, priced: boolean): unknown {
  const {
    response: _,
    timestamp: __,
    exception_info: ___,
    n_actions: ____,
    cost,
    ...extra
  } = (message.extra ?? {}) as Record<string, unknown>;
  const nano = priced && typeof cost === 'number' ? { cost: Math.round(cost * 1e9) } : {};
  return { ...message, ...('extra' in message ? { extra: { ...extra, ...nano } } : {}) };
}

async function play(golden: Golden, apiKey: string, file: string) {
  await using server = await startRawServer(golden.replies.map((reply) => jsonReply(reply)));
  const { api_base: base, api_key: _key, ...kwargs } = golden.model.model_kwargs;
  const { config } = loadConfig({
    specs: [
      join(shared, 'data', 'configs', `mini-swe-agent-2.4.6.${file}.yaml`),
      'agent.compat=mini-swe-agent-2',
    ],
    overrides: {
      model: {
        ...golden.model,
        model_kwargs: kwargs,
        base_url: String(base).replace('http://FAKE', server.url),
      },
    },
    readFile: read,
    cwd: '/',
  });
  const factory = await createModelFactory(config.model, { apiKey, requestStyle: 'litellm' });
  const outputs = [...golden.outputs];
  const environment = fakeEnvironment([]);
  const commands: string[] = [];
  environment.execute = async (command) => {
    commands.push(command);
    const next = outputs.shift();
    if (next?.submit !== undefined) return result(`COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n${next.submit}`);
    return result(next?.output ?? '', { exitCode: next?.returncode ?? 0 });
  };
  const asked = factory.create({ instanceId: 'i', epoch: 1 });
  let costNano = 0;
  const messages: Record<string, unknown>[] = [];
  const ended = await createAgent({
    instanceId: 'i',
    model: asked,
    environment,
    config: config.agent,
    callbacks: {
      onMessage: (_context, message) => messages.push(message as unknown as Record<string, unknown>),
      onCallEnded(_context, call) {
        costNano += call.costNano ?? 0;
      },
    },
  }).run(TASK);
  await factory.close();
  return { ended, requests: server.requests, commands, costNano, messages, model: config.model };
}

/** litellm makes up ids for Gemini's calls. What counts is that call and answer carry the same. */
function withoutIds(body: unknown): unknown {
  const seen = new Map<string, string>();
  const numbered = JSON.stringify(body).replaceAll(/call_[0-9a-f]{28}/g, (id) => {
    seen.set(id, seen.get(id) ?? `id ${seen.size}`);
    return seen.get(id)!;
  });
  return JSON.parse(numbered);
}

const of = (headers: IncomingHttpHeaders, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, headers[name]]));

describe.skipIf(!existsSync(folder))('requests as litellm writes them (skipped without ../shared)', () => {
  test.each(CASES)('%s', async (name, key, file) => {
    const golden = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as Golden;
    const { ended, requests, commands, costNano, messages, model } = await play(golden, key, file);
    expect(commands).toEqual(golden.commands);
    expect(requests).toHaveLength(golden.requests.length);
    for (const [k, expected] of golden.requests.entries()) {
      const { path, headers, body } = requests[k]!;
      expect(withoutIds(body)).toEqual(withoutIds(expected.body));
      expect(path).toBe(expected.path);
      const { accept: _any, ...interesting } = expected.headers;
      expect(of(headers, Object.keys(interesting))).toEqual(interesting);
    }
    expect(ended.exitStatus).toBe(golden.result.exit_status);
    expect(ended.submission).toBe(golden.result.submission);
    if (!CHAT.has(name)) {
      const seen = (all: readonly Record<string, unknown>[]) =>
        withoutIds(all.map((message) => compared(message, !PRICED_APART.has(name))));
      expect(seen(await publishedMessages(messages, model))).toEqual(seen(golden.final_messages));
    }
    if (!PRICED_APART.has(name)) expect(costNano / 1e9).toBeCloseTo(golden.cost, 9);
  });
});
