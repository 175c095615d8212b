// The bytes of a request: what is sent, what never is, and that it can always be decoded.

import { describe, expect, test } from 'vitest';
import { createRequestWriter } from '../../src/model/dialects/chat/chatDialect.ts';
import { extraHeaders, sentParameters } from '../../src/model/dialects/kwargs.ts';
import type { Message, ToolSpec } from '../../src/model/model.ts';
import fc from '../support/property.ts';

const TOOL: ToolSpec = {
  type: 'function',
  function: { name: 'bash', description: 'Run a command', parameters: { type: 'object' } },
};
const OPTIONS = { model: 'm', kwargs: {}, stream: false, cacheControl: null } as const;
type Options = Partial<Parameters<typeof createRequestWriter>[0]> & { tools?: readonly ToolSpec[] };
const textOf = (messages: readonly Message[], { tools, ...more }: Options = {}): string =>
  Buffer.from(createRequestWriter({ ...OPTIONS, ...more }).write(messages, tools)).toString();
const body = (messages: readonly Message[], more: Options = {}) =>
  JSON.parse(textOf(messages, more)) as Record<string, unknown> & { messages: Record<string, unknown>[] };

describe('request body', () => {
  test('extra is never sent, everything else of a message is', () => {
    const sent = body([
      { role: 'assistant', content: null, refusal: null, tool_calls: [], extra: { secret: 1 } },
    ]);
    expect(sent.messages).toEqual([{ role: 'assistant', content: null, refusal: null }]);
  });

  test('the caller’s messages stay untouched [M-31]', () => {
    const messages: Message[] = [{ role: 'user', content: 'x', extra: { a: 1 } }];
    body(messages, { cacheControl: 'default_end' });
    expect(messages).toEqual([{ role: 'user', content: 'x', extra: { a: 1 } }]);
  });

  test('the exit message of a trajectory is no part of a conversation', () => {
    expect(
      body([
        { role: 'user', content: 'x' },
        { role: 'exit', content: 'Submitted' },
      ]).messages,
    ).toHaveLength(1);
  });

  test('tools are sent when there are any', () => {
    expect(body([], { tools: [TOOL] }).tools).toEqual([TOOL]);
    expect(body([], { tools: [] })).not.toHaveProperty('tools');
    expect(body([])).not.toHaveProperty('tools');
  });

  test('extra parameters go in, those of litellm’s own client do not', () => {
    const kwargs = { temperature: 0, parallel_tool_calls: true, top_k: 5, drop_params: true, timeout: 60 };
    expect(body([], { kwargs })).toEqual({
      model: 'm',
      messages: [],
      temperature: 0,
      parallel_tool_calls: true,
      top_k: 5,
    });
    expect(sentParameters(kwargs)).not.toHaveProperty('drop_params');
  });

  test('extra_body is part of the body, extra_headers is none of it', () => {
    const kwargs = { extra_body: { provider: { order: ['a'] } }, extra_headers: { 'X-Title': 'x', n: 1 } };
    expect(body([], { kwargs })).toEqual({ model: 'm', messages: [], provider: { order: ['a'] } });
    expect(extraHeaders(kwargs)).toEqual({ 'X-Title': 'x', n: '1' });
    expect(extraHeaders({})).toEqual({});
  });

  test('a stream asks for its usage', () => {
    expect(body([], { stream: true })).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(body([])).not.toHaveProperty('stream');
  });
});

describe('set_cache_control: default_end', () => {
  const ephemeral = { type: 'ephemeral' };
  test('marks the last message only, inside its text [M-31]', () => {
    const sent = body(
      [
        { role: 'system', content: 'a' },
        { role: 'user', content: 'b' },
      ],
      { cacheControl: 'default_end' },
    );
    expect(sent.messages).toEqual([
      { role: 'system', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b', cache_control: ephemeral }] },
    ]);
  });

  test.each<[string, Message, unknown]>([
    [
      'a tool’s answer',
      { role: 'tool', content: 'x', tool_call_id: '1' },
      { role: 'tool', content: [{ type: 'text', text: 'x' }], tool_call_id: '1', cache_control: ephemeral },
    ],
    [
      'no content',
      { role: 'assistant', content: null },
      { role: 'assistant', content: null, cache_control: ephemeral },
    ],
    [
      'parts',
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b', cache_control: ephemeral },
        ],
      },
    ],
  ])('%s', (_name, message, expected) => {
    expect(body([message], { cacheControl: 'default_end' }).messages).toEqual([expected]);
  });
});

describe('encoding (T-16)', () => {
  test('a lone surrogate becomes U+FFFD, a pair and a written-out escape stay', () => {
    const content = 'lone \ud800, pair 😀, code "\\ud800" and C:\\udev';
    expect(body([{ role: 'user', content }]).messages[0]!.content).toBe(content.replace('\ud800', '\ufffd'));
  });

  test('whatever a message holds, the body is well-formed UTF-8 that reads back as what was meant', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: fc.constantFrom('\ud83d', '\udc00', '\\', 'u', 'd8', 'a') }),
        (a, b) => {
          const text = textOf([{ role: 'user', content: a + b }]);
          expect(/\\ud[89a-f]/.test(text) && !text.includes('\\\\ud')).toBe(false);
          const read = JSON.parse(Buffer.from(text).toString()) as { messages: { content: string }[] };
          expect(read.messages[0]!.content).toBe((a + b).toWellFormed());
        },
      ),
    );
  });
});

describe('a growing history', () => {
  const message = (content: string): Message => ({ role: 'user', content, extra: { n: content.length } });
  const fresh = (messages: readonly Message[], more: Options = {}) => textOf(messages, more);

  test('what was written once is not written again', () => {
    const writer = createRequestWriter(OPTIONS);
    let walked = 0;
    const part = {
      toJSON() {
        walked += 1;
        return { type: 'text', text: 'x' };
      },
    };
    const history: Message[] = [{ role: 'user', content: [part] }];
    for (let n = 0; n < 10; n += 1) {
      history.push(message(`${n}`));
      writer.write(history);
    }
    expect(walked).toBe(1);
  });

  test('whatever happens to a history between two calls, the body is that of the history', () => {
    const edit = fc.oneof(
      fc.record({
        kind: fc.constant('append' as const),
        text: fc.string({ unit: 'binary', maxLength: 300 }),
      }),
      fc.record({ kind: fc.constant('drop' as const), count: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), text: fc.string() }),
      fc.record({ kind: fc.constant('mutate' as const), at: fc.nat(), text: fc.string() }),
      fc.record({ kind: fc.constant('clear' as const) }),
      fc.record({ kind: fc.constant('tools' as const), on: fc.boolean() }),
    );
    fc.assert(
      fc.property(
        fc.array(edit, { maxLength: 30 }),
        fc.constantFrom(null, 'default_end' as const),
        (edits, cacheControl) => {
          const writer = createRequestWriter({ ...OPTIONS, cacheControl });
          const history: Message[] = [];
          let tools: readonly ToolSpec[] = [];
          for (const step of edits) {
            const at = 'at' in step && history.length > 0 ? step.at % history.length : 0;
            if (step.kind === 'append') history.push(message(step.text));
            else if (step.kind === 'drop') history.splice(Math.max(0, history.length - step.count));
            else if (step.kind === 'clear') history.length = 0;
            else if (step.kind === 'tools') tools = step.on ? [TOOL] : [];
            else if (history.length > 0 && step.kind === 'replace') history[at] = message(step.text);
            else if (history.length > 0 && step.kind === 'mutate')
              Object.assign(history[at]!, { content: step.text });
            const text = Buffer.from(writer.write(history, tools)).toString();
            expect(text).toBe(fresh(history, { cacheControl, tools }));
            JSON.parse(text);
          }
        },
      ),
    );
  });
});
