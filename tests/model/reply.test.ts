// Reading a chat completion, whatever a server calls one.

import { describe, expect, test } from 'vitest';
import { assembleStream, readCompletion } from '../../src/model/dialects/completion.ts';
import { providerError } from '../../src/model/dialects/providerError.ts';
import { completionBody, completionChunks } from '../support/fakeAnswer.ts';
import fc from '../support/property.ts';

function reply(message: Record<string, unknown>, finish = 'stop') {
  const read = readCompletion({ id: 'r1', model: 'm', choices: [{ message, finish_reason: finish }] });
  if (read.kind !== 'reply') throw new Error(`${read.kind}`);
  return read.reply;
}

describe('readCompletion', () => {
  test('keeps the message as the provider sent it, in its order', () => {
    const message = {
      role: 'assistant',
      content: 'hi',
      refusal: null,
      annotations: [],
      reasoning_content: 'hm',
    };
    expect(JSON.stringify(reply(message).message)).toBe(JSON.stringify(message));
  });

  test('takes text from parts [M-33, S-54]', () => {
    expect(
      reply({ content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }, { type: 'x' }] }).content,
    ).toBe('ab');
  });

  test('a call without an id gets one, and the message that goes back carries the same', () => {
    const read = reply({
      content: null,
      tool_calls: [{ function: { name: 'bash', arguments: { command: 'ls' } } }],
    });
    expect(read.toolCalls[0]).toMatchObject({ id: 'call_r1_0', function: { arguments: '{"command":"ls"}' } });
    expect(read.message.tool_calls).toEqual(read.toolCalls);
  });

  test('T-14: arguments that are broken, huge or missing are the agent’s to judge', () => {
    const args = ['{"command": "ls', '[1]', 'x'.repeat(10_000_000), undefined, '{"command":"a\\u0000b"}'];
    const calls = args.map((value, n) => ({
      id: `c${n}`,
      type: 'function',
      function: { name: 'bash', arguments: value },
    }));
    const read = reply({ content: 'x', tool_calls: calls });
    expect(read.toolCalls.map((call) => call.function.arguments)).toEqual(args.map((value) => value ?? ''));
  });

  test('an empty list of calls beside a text is a text', () => {
    expect(reply({ content: 'hi', tool_calls: [] }).toolCalls).toEqual([]);
  });

  test.each([
    [null, 'malformed'],
    ['text', 'malformed'],
    [[], 'malformed'],
    [{}, 'malformed'],
    [{ choices: 'x' }, 'malformed'],
    [{ choices: [{}] }, 'malformed'],
    [{ choices: [{ message: { content: 5 } }] }, 'malformed'],
    [{ choices: [{ message: { content: null, tool_calls: [{ id: 'x' }] } }] }, 'malformed'],
    [{ choices: [] }, 'empty'],
    [{ choices: [{ message: { content: '' } }] }, 'empty'],
    [{ choices: [{ message: { content: 'x' }, finish_reason: 'content_filter' }] }, 'refusal'],
    [{ choices: [], error: { code: 500, message: 'x' } }, 'error_object'],
    [{ error: 'just text' }, 'error_object'],
    [{ object: 'error', message: 'vLLM', code: 500 }, 'error_object'],
    [{ type: 'error', error: { type: 'overloaded_error', message: 'x' } }, 'error_object'],
    [{ error: null, choices: [{ message: { content: 'fine' } }] }, 'reply'],
  ])('%j is %s', (body, kind) => {
    expect(readCompletion(body).kind).toBe(kind);
  });

  test('never throws, whatever comes', () => {
    const odd = fc.oneof(
      fc.anything(),
      fc.record({
        choices: fc.array(fc.record({ message: fc.anything(), finish_reason: fc.anything() })),
        usage: fc.anything(),
      }),
    );
    fc.assert(fc.property(odd, (body) => void readCompletion(body)));
    fc.assert(fc.property(odd, (body) => void providerError(body)));
  });
});

describe('providerError', () => {
  test.each([
    [{ error: { message: 'm', code: 'c', type: 't' } }, { message: 'm', code: 'c', type: 't', status: null }],
    [{ error: { message: 'm', code: 429 } }, { message: 'm', code: null, status: 429 }],
    [{ error: { message: 'm', code: '503' } }, { code: null, status: 503 }],
    [
      [{ error: { code: 400, message: 'm', status: 'INVALID_ARGUMENT' } }],
      { code: 'INVALID_ARGUMENT', status: 400 },
    ],
    [{ detail: 'Not Found' }, { message: 'Not Found' }],
    [{ error: 'plain' }, { message: 'plain' }],
  ])('%j', (body, expected) => {
    expect(providerError(body)).toMatchObject(expected);
  });

  test('a body without any error is none', () => {
    expect(providerError({ hello: 1 })).toBeNull();
    expect(providerError('x')).toBeNull();
  });
});

describe('stream', () => {
  test('the chunks of a reply add up to the reply', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 });
    const call = fc.record({
      id: fc.uuid(),
      type: fc.constant('function' as const),
      function: fc.record({ name: fc.constant('bash'), arguments: fc.json() }),
    });
    const replies = fc.oneof(
      fc.record({ content: text }),
      fc.record({
        content: fc.oneof(text, fc.constant(null)),
        tool_calls: fc.array(call, { minLength: 1, maxLength: 3 }),
      }),
    );
    fc.assert(
      fc.property(replies, (given) => {
        const assembly = assembleStream();
        for (const chunk of completionChunks(given, 'm', true))
          assembly.add(JSON.parse(JSON.stringify(chunk)));
        expect(readCompletion(JSON.parse(JSON.stringify(assembly.body())))).toEqual(
          readCompletion(JSON.parse(JSON.stringify(completionBody(given, 'm')))),
        );
      }),
    );
  });

  test('a name repeated in every chunk is not doubled, and missing indexes count up', () => {
    const assembly = assembleStream();
    const piece = (args: string) => ({
      choices: [{ delta: { tool_calls: [{ id: 'c', function: { name: 'bash', arguments: args } }] } }],
    });
    assembly.add(piece('{"a"'));
    assembly.add(piece(':1}'));
    expect(assembly.body()).toMatchObject({
      choices: [{ message: { tool_calls: [{ function: { name: 'bash', arguments: '{"a":1}' } }] } }],
    });
  });

  const assembled = (...deltas: object[]) => {
    const assembly = assembleStream();
    for (const delta of deltas) assembly.add({ choices: [{ delta }] });
    return (assembly.body() as { choices: { message: Record<string, unknown> }[] }).choices[0]!.message;
  };
  const piece = (rest: object, name: string | undefined, args: string) => ({
    tool_calls: [{ ...rest, function: { ...(name && { name }), arguments: args } }],
  });
  const argumentsOf = (message: Record<string, unknown>) =>
    (message.tool_calls as { function: { arguments: string } }[]).map((call) => call.function.arguments);

  test.each([
    ['of one index and two ids', { index: 0, id: 'a' }, { index: 0, id: 'b' }],
    ['of one index and no id', { index: 0 }, { index: 0 }],
    ['without an index', { id: 'a' }, { id: 'b' }],
    ['without anything', {}, {}],
  ])('parallel calls %s stay apart', (_how, first, second) => {
    const message = assembled(piece(first, 'bash', '{"a":1}'), piece(second, 'bash', '{"b":2}'));
    expect(argumentsOf(message)).toEqual(['{"a":1}', '{"b":2}']);
  });

  test.each([
    ['one index', { index: 0 }],
    ['no index', {}],
  ])('calls of %s in one chunk that say nothing yet stay apart by their ids', (_how, rest) => {
    const call = (id: string) => ({ ...rest, id, function: { name: 'list', arguments: '' } });
    const message = assembled({ tool_calls: [call('a'), call('b')] });
    expect((message.tool_calls as { id: string }[]).map(({ id }) => id)).toEqual(['a', 'b']);
  });

  test('what a function of a call has beside its name and arguments is kept', () => {
    const call = { index: 0, id: 'a', function: { name: 'f', arguments: '{}', thought_signature: 's' } };
    expect(assembled({ tool_calls: [call] })).toMatchObject({
      tool_calls: [{ function: { name: 'f', arguments: '{}', thought_signature: 's' } }],
    });
  });

  test('pieces of calls without an index follow the call that was begun last', () => {
    const message = assembled(
      piece({ id: 'a' }, 'bash', ''),
      piece({}, undefined, '{"a":1}'),
      piece({ id: 'b' }, 'bash', ''),
      piece({}, undefined, '{"b":'),
      piece({}, undefined, '2}'),
    );
    expect(argumentsOf(message)).toEqual(['{"a":1}', '{"b":2}']);
  });

  test('an id that is made up anew for each piece begins no call', () => {
    const message = assembled(
      piece({ index: 0, id: 'x1' }, 'bash', '{"a"'),
      piece({ index: 0, id: 'x2' }, 'bash', ':1}'),
    );
    expect(argumentsOf(message)).toEqual(['{"a":1}']);
  });

  test('reasoning_details, thought signatures and fields that nobody knows are kept', () => {
    const detail = (rest: object) => ({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...rest }] });
    const message = assembled(
      { role: 'assistant', content: '', ...detail({ text: 'I ' }) },
      detail({ text: 'see', format: 'anthropic-claude-v1' }),
      detail({ signature: 'sig' }),
      { reasoning_details: [{ type: 'reasoning.encrypted', index: 1, data: 'AbC' }] },
      { new_text: 'one ', new_object: { a: 1 } },
      { new_text: 'two', new_object: { b: 2 }, new_list: [1] },
      {
        tool_calls: [
          {
            ...{ index: 0, id: 'a', function: { name: 'bash', arguments: '{}' } },
            extra_content: { google: { thought_signature: 's' } },
          },
        ],
      },
    );
    expect(message).toMatchObject({
      reasoning_details: [
        { type: 'reasoning.text', index: 0, text: 'I see', format: 'anthropic-claude-v1', signature: 'sig' },
        { type: 'reasoning.encrypted', index: 1, data: 'AbC' },
      ],
      new_text: 'one two',
      new_object: { a: 1, b: 2 },
      new_list: [1],
      tool_calls: [{ id: 'a', extra_content: { google: { thought_signature: 's' } } }],
    });
  });

  test('chunks that are none are counted, not thrown', () => {
    const assembly = assembleStream();
    for (const odd of [null, 5, 'x', { choices: 3 }]) assembly.add(odd);
    expect(assembly.body()).toMatchObject({ unread_chunks: 4, choices: [] });
  });
});
