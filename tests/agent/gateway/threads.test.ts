// Requests repeat their history; the record holds each message once.
import { describe, expect, test } from 'vitest';
import { createThreads } from '../../../src/agent/gateway/conversation.ts';
import { sideOf } from '../../../src/agent/gateway/routes.ts';
import type { Message } from '../../../src/model/model.ts';

const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
const main = { kind: 'main' } as const;
const texts = ({ messages }: { messages: readonly Message[] }) => messages.map(({ content }) => content);

describe('threads', () => {
  test('only what is new is given out, whatever form the reply comes back in', () => {
    const threads = createThreads();
    const first = [{ role: 'system', content: 's' } as const, user('task')];
    expect(texts(threads.add(main, first, assistant('a')))).toEqual(['s', 'task', 'a']);
    const second = [...first, assistant('a, as the program writes it'), user('b')];
    expect(texts(threads.add(main, second, assistant('c')))).toEqual(['b', 'c']);
    expect(texts(threads.add(main, [...second, assistant('c'), user('d')], null))).toEqual(['d']);
  });

  test.each(['main', 'title', 'main-2'])(
    'a sub-agent that calls itself %s has a conversation of its own',
    (id) => {
      const threads = createThreads();
      threads.add(main, [user('task')], assistant('a'));
      threads.add(main, [user('another task')], assistant('b'));
      const sub = { kind: 'subagent', id } as const;
      expect(threads.add(sub, [user('task')], assistant('c'))).toMatchObject({ thread: `subagent-${id}` });
      expect(threads.add(main, [user('task'), assistant('a'), user('b')], null)).toMatchObject({
        thread: 'main',
        messages: [user('b')],
      });
    },
  );

  test('marks of the cache are no news', () => {
    const threads = createThreads();
    const marked = (on: boolean): Message => ({
      role: 'user',
      content: [{ type: 'image', ...(on && { cache_control: { type: 'ephemeral' } }) }],
    });
    threads.add(main, [marked(true)], assistant('a'));
    expect(texts(threads.add(main, [marked(false), assistant('a'), user('b')], null))).toEqual(['b']);
  });

  test('a history that was rewritten goes on from where it differs; another task is another conversation', () => {
    const threads = createThreads();
    threads.add(main, [user('task')], assistant('a'));
    threads.add(main, [user('task'), assistant('a'), user('b')], assistant('c'));
    expect(threads.add(main, [user('task'), user('in short')], assistant('d'))).toMatchObject({
      thread: 'main',
    });
    expect(threads.add(main, [user('a summary of it all')], null)).toMatchObject({ thread: 'main-2' });
    expect(threads.add({ kind: 'subagent', id: 'x' }, [user('task')], null)).toMatchObject({ thread: 'x' });
  });
});

describe('conversations', () => {
  const expected = [
    { role: 'system', content: 's' },
    { role: 'user', content: 'task' },
    {
      role: 'assistant',
      content: 'I look',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'README' },
  ];
  const call = { id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } };
  const input = { command: 'ls' };
  const part = (type: string, text: string) => [{ type, text }];
  test.each([
    [
      'chat',
      {
        messages: [
          { role: 'developer', content: 's' },
          { role: 'user', content: part('text', 'task') },
          { role: 'assistant', content: 'I look', tool_calls: [call] },
          { role: 'tool', tool_call_id: 'c1', content: 'README' },
        ],
      },
    ],
    [
      'responses',
      {
        instructions: 's',
        input: [
          { role: 'user', content: part('input_text', 'task') },
          { type: 'reasoning', encrypted_content: 'x' },
          { type: 'message', role: 'assistant', content: part('output_text', 'I look') },
          { type: 'function_call', call_id: 'c1', name: 'bash', arguments: '{"command":"ls"}' },
          { type: 'function_call_output', call_id: 'c1', output: 'README' },
        ],
      },
    ],
    [
      'messages',
      {
        system: part('text', 's'),
        messages: [
          { role: 'user', content: 'task' },
          {
            role: 'assistant',
            content: [...part('text', 'I look'), { type: 'tool_use', id: 'c1', name: 'bash', input }],
          },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'c1', content: part('text', 'README') }],
          },
        ],
      },
    ],
    [
      'gemini',
      {
        systemInstruction: { parts: [{ text: 's' }] },
        contents: [
          { role: 'user', parts: [{ text: 'task' }] },
          {
            role: 'model',
            parts: [
              { text: 'hm', thought: true },
              { text: 'I look' },
              { functionCall: { id: 'c1', name: 'bash', args: input } },
            ],
          },
          { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'bash', response: 'README' } }] },
        ],
      },
    ],
  ] as const)('%s reads as the same messages', (dialect, request) => {
    expect(sideOf(dialect).recorded(request)).toEqual(expected);
  });
});
