// What one more step costs does not grow with the conversation: only what is new is serialised, in every dialect. Counted, not timed.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { dialectOf } from '../../../src/model/clouds/chooseCloud.ts';
import type { Message, ToolSpec } from '../../../src/model/model.ts';
import { modelConfigSchema } from '../../../src/model/modelConfig.ts';

const STEPS = 500;
const TOOLS: readonly ToolSpec[] = [
  { type: 'function', function: { name: 'bash', description: 'runs', parameters: { type: 'object' } } },
];

/** A turn as each provider sends it, with the thought that goes back. */
const NATIVE: Readonly<Record<string, (n: number) => unknown>> = {
  chat: () => undefined,
  responses: (n) => [
    { type: 'reasoning', id: `rs_${n}`, summary: [], encrypted_content: 'e'.repeat(200) },
    {
      type: 'function_call',
      id: `fc_${n}`,
      call_id: `call_${n}`,
      name: 'bash',
      arguments: '{"command":"ls"}',
    },
  ],
  messages: (n) => [
    { type: 'thinking', thinking: 't'.repeat(200), signature: `s${n}` },
    { type: 'tool_use', id: `call_${n}`, name: 'bash', input: { command: 'ls' } },
  ],
  gemini: (n) => [
    { text: 't'.repeat(200), thought: true },
    { functionCall: { id: `call_${n}`, name: 'bash', args: { command: 'ls' } }, thoughtSignature: `s${n}` },
  ],
};

function step(dialect: string, n: number): Message[] {
  const native = NATIVE[dialect]!(n);
  return [
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: `call_${n}`, type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } },
      ],
      ...(native === undefined ? {} : { native: { dialect, content: native } }),
    },
    { role: 'tool', tool_call_id: `call_${n}`, content: 'o'.repeat(500) },
  ];
}

const BEGIN: Message[] = [
  { role: 'system', content: 's'.repeat(2000) },
  { role: 'user', content: 'u'.repeat(5000) },
];

const CASES = [
  ['chat', 'openai/gpt-4o', null],
  ['chat', 'openai/gpt-4o', 'default_end'],
  ['responses', 'gpt-5.1', null],
  ['messages', 'claude-opus-4-5', null],
  ['messages', 'bedrock/anthropic.claude-opus-4-5-20251101-v1:0', null],
  ['gemini', 'gemini/gemini-2.5-pro', null],
] as const;

afterEach(() => void vi.restoreAllMocks());

describe.each(['own', 'litellm'] as const)('as %s', (style) => {
  test.each(CASES)('%s, %s, cache mark %s', async (dialect, model_name, set_cache_control) => {
    const config = modelConfigSchema.parse({ model_name, dialect, set_cache_control });
    const spoken = await dialectOf(config);
    const writer = spoken.createWriter(config, 'm', style);
    let characters = 0;
    const { stringify } = JSON;
    vi.spyOn(JSON, 'stringify').mockImplementation(((...given: Parameters<typeof stringify>) => {
      const text = stringify(...given);
      characters += text?.length ?? 0;
      return text;
    }) as typeof stringify);
    const history = [...BEGIN];
    const costs: number[] = [];
    let last = '';
    for (let n = 0; n < STEPS; n += 1) {
      characters = 0;
      const bytes = writer.write(history, TOOLS);
      costs.push(characters);
      if (n === STEPS - 1) last = Buffer.from(bytes).toString();
      else history.push(...step(dialect, n));
    }
    // A step adds about a thousand characters to half a million: what is written again is a few turns at most.
    expect(last.length).toBeGreaterThan(300_000);
    expect(costs[0]).toBeGreaterThan(5000);
    const early = Math.max(...costs.slice(5, 105));
    expect(early).toBeGreaterThan(500);
    expect(Math.max(...costs.slice(-100))).toBeLessThanOrEqual(early + 50);
    expect(early).toBeLessThan(10_000);
    const fresh = Buffer.from(spoken.createWriter(config, 'm', style).write(history, TOOLS)).toString();
    expect(last).toBe(fresh);
  });
});
