// A long conversation with a server that counts its prompt cache as Anthropic does: five minutes, the longest marked prefix that is
// known, nothing under 1,024 tokens.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { messagesDialect } from '../../src/model/dialects/messages/messagesDialect.ts';
import type { Message } from '../../src/model/model.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';

const FLOOR = 1024;
const LIFETIME_MS = 5 * 60_000;
const TOOLS = [
  {
    type: 'function' as const,
    function: { name: 'bash', description: 'Execute a bash command', parameters: { type: 'object' } },
  },
];

interface Block {
  cache_control?: unknown;
}
interface Request {
  tools?: Block[];
  system?: Block[];
  messages: { role: string; content: Block[] }[];
}

/** Four bytes a token, which is near enough for a share. */
const tokens = (text: string): number => Math.ceil(text.length / 4);

function cache() {
  const stored = new Map<string, number>();
  return {
    take(request: Request, now: number) {
      const blocks = [
        ...(request.tools ?? []),
        ...(request.system ?? []),
        ...request.messages.flatMap(({ role, content }) => content.map((block) => ({ ...block, role }))),
      ];
      const marks = blocks.filter((block) => block.cache_control).length;
      let prefix = '';
      let read = 0;
      let longestMark = 0;
      for (const block of blocks) {
        const { cache_control, ...bare } = block;
        prefix += JSON.stringify(bare);
        if (!cache_control || tokens(prefix) < FLOOR) continue;
        const key = createHash('sha256').update(prefix).digest('hex');
        longestMark = tokens(prefix);
        const until = stored.get(key);
        if (until !== undefined && until > now) read = tokens(prefix);
        stored.set(key, now + LIFETIME_MS);
      }
      const total = tokens(prefix);
      return { marks, total, read, written: longestMark - read, plain: total - longestMark };
    },
  };
}

const decode = (bytes: Uint8Array): Request => JSON.parse(Buffer.from(bytes).toString()) as Request;

function converse(steps: number, secondsApart: number) {
  const config = modelConfigSchema.parse({ model_name: 'anthropic/claude-sonnet-4-5' });
  const writer = messagesDialect.createWriter(config, 'claude-sonnet-4-5', 'own');
  const provider = cache();
  const history: Message[] = [
    { role: 'system', content: 'You are an engineer. '.repeat(60) },
    { role: 'user', content: 'Mend the defect. '.repeat(300) },
  ];
  const counts: ReturnType<typeof provider.take>[] = [];
  for (let step = 0; step < steps; step++) {
    counts.push(provider.take(decode(writer.write(history, TOOLS)), step * secondsApart * 1000));
    const call = {
      id: `toolu_${step}`,
      type: 'function' as const,
      function: { name: 'bash', arguments: '{"command":"cat a"}' },
    };
    history.push(
      { role: 'assistant', content: `step ${step}`, tool_calls: [call] },
      { role: 'tool', tool_call_id: call.id, content: `line ${step}\n`.repeat(100) },
    );
  }
  const sum = (kind: 'total' | 'read' | 'written' | 'plain') =>
    counts.reduce((n, count) => n + count[kind], 0);
  return { counts, share: sum('read') / sum('total'), sum };
}

describe('the prompt cache of Messages', () => {
  test('at least nine tenths of the input of 40 steps are read from it', () => {
    const { counts, share, sum } = converse(40, 20);
    expect(share).toBeGreaterThan(0.9);
    expect(sum('plain')).toBe(0);
    for (const { marks } of counts) expect(marks).toBeLessThanOrEqual(4);
  });

  test('every call reads what the call before it wrote', () => {
    const { counts } = converse(10, 20);
    for (const [k, count] of counts.entries()) {
      if (k === 0) continue;
      expect(count.read).toBe(counts[k - 1]!.total);
    }
  });

  test('what is forgotten is written again, and the answer is the same', () => {
    const { share } = converse(10, 400);
    expect(share).toBe(0);
  });

  test('the bytes that a call writes anew do not grow with the history', () => {
    const config = modelConfigSchema.parse({ model_name: 'anthropic/claude-sonnet-4-5' });
    const writer = messagesDialect.createWriter(config, 'm', 'own');
    const fresh = messagesDialect.createWriter(config, 'm', 'own');
    const history: Message[] = [{ role: 'user', content: 'task' }];
    for (let step = 0; step < 30; step++) {
      const grown = Buffer.from(writer.write(history, TOOLS)).toString();
      expect(grown).toBe(Buffer.from(fresh.write([...history], TOOLS)).toString());
      history.push({ role: 'assistant', content: `a ${step}` }, { role: 'user', content: `b ${step}` });
    }
  });
});
