// A long conversation with a server that counts its prompt cache as Anthropic does: five minutes or an hour, the longest marked prefix that is
// known, nothing under 1,024 tokens.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { messagesDialect } from '../../src/model/dialects/messages/messagesDialect.ts';
import { responsesDialect } from '../../src/model/dialects/responses/responsesDialect.ts';
import type { Message } from '../../src/model/model.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';

const FLOOR = 1024;
const LIFETIME_MS = { '5m': 5 * 60_000, '1h': 60 * 60_000 };
const TOOLS = [
  {
    type: 'function' as const,
    function: { name: 'bash', description: 'Execute a bash command', parameters: { type: 'object' } },
  },
];

interface Block {
  cache_control?: { type: string; ttl?: '5m' | '1h' };
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
        stored.set(key, now + LIFETIME_MS[cache_control.ttl ?? '5m']);
      }
      const total = tokens(prefix);
      return { marks, total, read, written: longestMark - read, plain: total - longestMark };
    },
  };
}

const decode = (bytes: Uint8Array): Request => JSON.parse(Buffer.from(bytes).toString()) as Request;

function converse(steps: number, secondsApart: number, cache_ttl?: '5m' | '1h') {
  const config = modelConfigSchema.parse({ model_name: 'anthropic/claude-sonnet-4-5', cache_ttl });
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

  test('an hour is kept on request, for commands that take longer than five minutes', () => {
    const { share, counts } = converse(40, 400, '1h');
    expect(share).toBeGreaterThan(0.9);
    for (const { marks } of counts) expect(marks).toBeLessThanOrEqual(4);
    expect(converse(10, 4000, '1h').share).toBe(0);
    expect(converse(40, 20, '5m').share).toBe(converse(40, 20).share);
  });

  test('what is shorter than the floor is not kept', () => {
    const config = modelConfigSchema.parse({ model_name: 'anthropic/claude-sonnet-4-5' });
    const writer = messagesDialect.createWriter(config, 'm', 'own');
    const provider = cache();
    const history: Message[] = [
      { role: 'system', content: 's' },
      { role: 'user', content: 'u'.repeat(FLOOR) },
    ];
    const ask = () => provider.take(decode(writer.write(history, TOOLS)), 0);
    expect([ask(), ask()]).toMatchObject([
      { read: 0, written: 0 },
      { read: 0, written: 0 },
    ]);
  });

  test('the mark says an hour only where an hour is asked for, also for mini-swe-agent', () => {
    const marksOf = (style: 'own' | 'litellm', more: object) => {
      const config = modelConfigSchema.parse({ model_name: 'anthropic/claude-sonnet-4-5', ...more });
      const history: Message[] = [
        { role: 'system', content: 's' },
        { role: 'user', content: 'u' },
      ];
      const text = Buffer.from(messagesDialect.createWriter(config, 'm', style).write(history)).toString();
      return [...text.matchAll(/"cache_control":({[^}]*})/g)].map(([, mark]) => mark);
    };
    const [short, hour] = ['{"type":"ephemeral"}', '{"type":"ephemeral","ttl":"1h"}'];
    expect(marksOf('own', {})).toEqual([short, short]);
    expect(marksOf('own', { cache_ttl: '1h' })).toEqual([hour, hour]);
    expect(marksOf('litellm', { set_cache_control: 'default_end', cache_ttl: '1h' })).toEqual([hour]);
    expect(marksOf('litellm', { cache_ttl: '1h' })).toEqual([]);
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

describe('the cache key of Responses', () => {
  const keyOf = (
    history: readonly Message[],
    model_kwargs: object = {},
    style: 'own' | 'litellm' = 'own',
  ) => {
    const config = modelConfigSchema.parse({ model_name: 'openai/gpt-5.1', model_kwargs });
    const body = responsesDialect.createWriter(config, 'gpt-5.1', style).write(history, TOOLS);
    return (JSON.parse(Buffer.from(body).toString()) as { prompt_cache_key?: string }).prompt_cache_key;
  };
  const task = (text: string): Message[] => [
    { role: 'system', content: 's' },
    { role: 'user', content: text },
  ];
  const grown: Message[] = [
    ...task('a'),
    { role: 'assistant', content: 'x' },
    { role: 'user', content: 'y' },
  ];

  test('is the same for all calls and attempts of a task, and another for another task', () => {
    expect(keyOf(task('a'))).toMatch(/^[0-9a-f]{32}$/);
    expect(keyOf(grown)).toBe(keyOf(task('a')));
    expect(keyOf(task('b'))).not.toBe(keyOf(task('a')));
  });
  test('is the one of the configuration where that has one, and none for mini-swe-agent', () => {
    expect(keyOf(grown, { prompt_cache_key: 'mine' })).toBe('mine');
    expect(keyOf(grown, {}, 'litellm')).toBeUndefined();
  });
});
