// What translation carries beyond plain turns, and what it says that it left out.
import { describe, expect, test } from 'vitest';
import { createTranslator } from '../../../src/agent/gateway/translator.ts';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import type { ModelReply, WireAnswer } from '../../../src/model/model.ts';

/** A part of a body, as deep as a test looks into it. */
interface Json {
  readonly [name: string]: Json;
}
const listOf = (value: Json | undefined): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

const translation = (
  translator: ReturnType<typeof createTranslator>,
  dialect: DialectName,
  to: DialectName,
  request: Record<string, unknown>,
  name = 'm-1',
) =>
  translator.translate({
    ...{ dialect, modelAsked: 'm-1', body: Buffer.from(JSON.stringify(request)) },
    target: { dialect: to, model: name, name, streamed: false },
  });

const once = (
  dialect: DialectName,
  to: DialectName,
  request: Record<string, unknown>,
  name?: string,
): { sent: Json; left: readonly string[] } => {
  const { body, left } = translation(createTranslator(), dialect, to, request, name);
  return { sent: JSON.parse(body.toString()) as Json, left };
};

const answerOf = (reply: Partial<ModelReply>): WireAnswer => ({
  refused: null,
  response: {
    success: true,
    message: '',
    result: {
      message: { role: 'assistant', content: null },
      ...{
        content: '',
        toolCalls: [],
        finishReason: null,
        modelId: 'm-1',
        usage: null,
        costNano: 0,
        raw: {},
      },
      ...reply,
    },
  },
});

const call = (id: string, name: string, args: string) =>
  ({ id, type: 'function', function: { name, arguments: args } }) as const;

describe('translation', () => {
  test('gives a model what it thought before a call back, with that call', () => {
    const translator = createTranslator();
    const first = translation(translator, 'responses', 'messages', { input: 'fix it' });
    const thought = { type: 'thinking', thinking: 'so', signature: 'c2lnbmVk' };
    const use = { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls' } };
    const calls = [call('toolu_1', 'bash', '{"command": "ls"}')];
    first.answer(
      answerOf({
        toolCalls: calls,
        message: {
          ...{ role: 'assistant', content: null, tool_calls: calls },
          native: { dialect: 'messages', content: [thought, use] },
        },
      }),
    );
    const item = { type: 'function_call', call_id: 'toolu_1', name: 'bash', arguments: '{"command": "ls"}' };
    const result = { type: 'function_call_output', call_id: 'toolu_1', output: 'a' };
    const input = [{ role: 'user', content: 'fix it' }, item, result];
    const sent = JSON.parse(translation(translator, 'responses', 'messages', { input }).body.toString()) as {
      messages: { content: unknown }[];
    };
    expect(sent.messages[1]!.content).toEqual([thought, use]);
    const other = once('responses', 'messages', { input }).sent;
    expect(listOf(other.messages)[1]!.content).toEqual([use]);
  });

  test.each([
    ['with calls', [call('c1', 'bash', '{}')]],
    ['of words alone', []],
  ])(
    'gives reasoning_details, thought signatures and unknown fields of a turn %s back to a chat model',
    (_how, calls) => {
      const translator = createTranslator();
      const kept = {
        reasoning_details: [{ type: 'reasoning.encrypted', data: 'AbC' }],
        extra_content: { google: { thought_signature: 's' } },
        new_field: { a: 1 },
      };
      const tool_calls = calls.map((one) => ({
        ...one,
        extra_content: { google: { thought_signature: 't' } },
      }));
      const message = {
        ...{ role: 'assistant' as const, content: 'I see.', ...kept },
        ...(calls.length > 0 && { tool_calls }),
      };
      const input = [{ role: 'user', content: 'fix it' }];
      translation(translator, 'responses', 'chat', { input }).answer(
        answerOf({ content: 'I see.', toolCalls: tool_calls, message }),
      );
      const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I see.' }] };
      const items = calls.map(({ id, function: { name, arguments: args } }) => ({
        ...{ type: 'function_call', call_id: id, name, arguments: args },
      }));
      const next = [...input, said, ...items, { role: 'user', content: 'go on' }];
      const { body } = translation(translator, 'responses', 'chat', { input: next });
      const sent = JSON.parse(body.toString()) as { messages: Record<string, unknown>[] };
      expect(sent.messages[1]).toEqual(message);
    },
  );

  test('keeps tools that are called with text, and tools of a namespace, as what the program knows', () => {
    const inner = { type: 'function', name: 'spawn', description: 'd', parameters: { type: 'object' } };
    const request = {
      input: [
        { role: 'user', content: 'x' },
        { type: 'custom_tool_call', call_id: 'c1', name: 'apply_patch', input: '*** Begin' },
        { type: 'custom_tool_call_output', call_id: 'c1', output: 'ok' },
      ],
      tools: [
        { type: 'custom', name: 'apply_patch', description: 'patches' },
        { type: 'namespace', name: 'agents', tools: [inner] },
        { type: 'local_shell' },
      ],
    };
    const { body, left, answer } = translation(createTranslator(), 'responses', 'chat', request);
    const sent = JSON.parse(body.toString()) as Json;
    expect(listOf(sent.tools).map((tool) => tool.function!.name)).toEqual(['apply_patch', 'agents__spawn']);
    expect(listOf(listOf(sent.messages)[1]!.tool_calls)[0]!.function!.arguments).toBe(
      '{"input":"*** Begin"}',
    );
    expect(left).toEqual(['the tool local_shell']);
    const said = answer(
      answerOf({
        toolCalls: [call('a', 'apply_patch', '{"input":"*** End"}'), call('b', 'agents__spawn', '{"n":1}')],
      }),
    );
    expect(said.kind === 'reply' && JSON.parse(said.text)).toMatchObject({
      status: 'completed',
      output: [
        { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** End' },
        { type: 'function_call', call_id: 'b', name: 'spawn', namespace: 'agents', arguments: '{"n":1}' },
      ],
    });
  });

  test('finds the call that a result without an id belongs to', () => {
    const asked = (command: string) => ({ functionCall: { name: 'bash', args: { command } } });
    const answered = (output: string) => ({ functionResponse: { name: 'bash', response: { output } } });
    const { sent } = once('gemini', 'chat', {
      contents: [
        { role: 'user', parts: [{ text: 'x' }] },
        { role: 'model', parts: [asked('one'), asked('two')] },
        { role: 'user', parts: [answered('1'), answered('2')] },
        { role: 'model', parts: [asked('three')] },
        { role: 'user', parts: [answered('3')] },
      ],
    });
    const messages = listOf(sent.messages);
    const ids = messages.flatMap((message) => listOf(message.tool_calls).map(({ id }) => id));
    expect(new Set(ids).size).toBe(3);
    const results = messages.filter(({ role }) => String(role) === 'tool');
    expect(results.map(({ tool_call_id }) => tool_call_id)).toEqual(ids);
  });

  test('says instructions in the middle of a conversation where they stand', () => {
    const { sent } = once('messages', 'gemini', {
      system: 'first',
      messages: [
        { role: 'user', content: 'task' },
        { role: 'system', content: 'later' },
      ],
    });
    expect(sent.systemInstruction!.parts).toEqual([{ text: 'first' }]);
    expect(JSON.stringify(sent.contents)).toContain('later');
  });

  test('names what it does not carry, in its place and for the record', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aaaa' } };
    const { sent, left } = once('messages', 'chat', {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'see' }, image] }],
      thinking: { type: 'enabled', budget_tokens: 4000 },
      top_k: 3,
      output_config: { format: { type: 'json_schema' } },
    });
    expect(listOf(sent.messages)[0]!.content).toBe('see\n[something that is no text, and was left out]');
    expect(left).toEqual(['top_k', 'output_config.format', 'images and files', 'reasoning effort']);
  });

  test('asks for no longer answer than the model gives, and for no parameter that it refuses', () => {
    const { sent } = once(
      'gemini',
      'chat',
      {
        contents: [{ role: 'user', parts: [{ text: 'x' }] }],
        generationConfig: {
          ...{ temperature: 1, topP: 0.95, maxOutputTokens: 9_000_000 },
          thinkingConfig: { thinkingLevel: 'HIGH' },
        },
      },
      'gpt-5',
    );
    expect(sent).toMatchObject({ max_completion_tokens: 128_000, reasoning_effort: 'high' });
    expect(sent).not.toHaveProperty('top_p');
  });

  test.each([
    ['messages', 'prompt is too long: too many tokens'],
    ['gemini', 'exceeds the maximum number of tokens allowed: too many tokens'],
    ['chat', 'context_length_exceeded'],
    ['responses', 'context_length_exceeded'],
  ] as const)('says to a program that speaks %s that its conversation is too long', (dialect, words) => {
    const { answer } = translation(createTranslator(), dialect, 'chat', {});
    const said = answer({
      refused: { status: 400, headers: {}, text: '{"error":{"message":"too many tokens"}}' },
      response: {
        ...{ success: false, error: 'CONTEXT_LENGTH_EXCEEDED', message: 'x' },
        metadata: { kind: 'context' },
      },
    });
    expect(said.kind === 'failed' && said.outcome.kind === 'refused' && said.outcome.text).toContain(words);
  });

  test.each([
    ['chat', '"finish_reason":"content_filter"'],
    ['responses', '"reason":"content_filter"'],
    ['messages', '"stop_reason":"refusal"'],
    ['gemini', '"finishReason":"SAFETY"'],
  ] as const)('tells a program that speaks %s of a refusal as its model would', (dialect, words) => {
    const { answer } = translation(createTranslator(), dialect, 'chat', {});
    const said = answer({
      refused: null,
      response: { success: false, error: 'INVALID_RESPONSE', message: 'no', metadata: { kind: 'refusal' } },
    });
    expect(said.kind === 'reply' && said.text).toContain(words);
  });

  test('hands arguments that are no object to the program, which says what is wrong with them', () => {
    const { answer } = translation(createTranslator(), 'messages', 'chat', {});
    const said = answer(answerOf({ toolCalls: [call('a', 'bash', '{"command": "l')] }));
    expect(said.kind === 'reply' && JSON.parse(said.text)).toMatchObject({
      content: [{ input: { unreadable_arguments: '{"command": "l' } }],
    });
  });
});
