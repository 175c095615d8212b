// Replies as mini-swe-agent 2.4.6 with litellm 1.106.2 kept them in its trajectory files, made with that program against a local server.
import { describe, expect, test } from 'vitest';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import { dialectNamed } from '../../../src/model/dialects/everyDialect.ts';
import { publishedMessages } from '../../../src/model/dialects/published/publishedMessages.ts';
import recorded from './publishedReplies.json' with { type: 'json' };

type Json = Record<string, unknown>;
interface Pair {
  readonly dialect: 'messages' | 'responses' | 'gemini';
  readonly body: Json;
  readonly message: Json | null;
  readonly response: Json;
}
const pairs = recorded as unknown as Pair[];
const AT = 1_700_000_000;
const PROMPT: Json[] = [
  { role: 'system', content: 's', extra: { timestamp: AT } },
  { role: 'user', content: 'u', extra: { timestamp: AT } },
];

function readOf({ dialect, body }: Pair) {
  const read = dialectNamed(dialect as DialectName).read(body);
  if (read.kind !== 'reply') throw new Error(read.kind);
  return read.reply;
}

/** The reply as the agent's history has it, and a format error where it was dropped. */
function historyOf(pair: Pair): Json {
  const extra = { response: pair.body, timestamp: AT + 0.5 };
  if (pair.message === null)
    return { role: 'user', content: 'bad', extra: { interrupt_type: 'FormatError', ...extra } };
  return { ...readOf(pair).message, extra: { actions: [], ...extra } };
}

/** What litellm makes up: ids of calls, the id of a reply of Anthropic, the time, and tokens of thought by a tokenizer of its own. */
function masked(value: unknown, dialect: string): unknown {
  const seen = new Map<string, string>();
  const text = JSON.stringify(value).replaceAll(/call_[0-9a-f]{28}/g, (id) => {
    seen.set(id, seen.get(id) ?? `id ${seen.size}`);
    return seen.get(id)!;
  });
  return JSON.parse(text, (key, inner) => {
    if (dialect !== 'responses' && key === 'created') return 0;
    if (dialect === 'messages' && key === 'id' && /^(chatcmpl-|msg_)/.test(String(inner))) return 'id';
    if (dialect === 'messages' && key === 'completion_tokens_details') return 'counted by litellm';
    return inner;
  });
}

const kept = ({ extra: _, ...message }: Json): Json => message;

describe('a history as mini-swe-agent keeps it', () => {
  test.each(pairs.map((pair, index) => [`${pair.dialect} ${index}`, pair] as const))(
    '%s',
    async (_, pair) => {
      const found = (await publishedMessages([...PROMPT, historyOf(pair)], {}))[2]!;
      const extra = found.extra as Json;
      const response = pair.message && pair.dialect === 'responses' ? kept(found) : extra.response;
      const { dialect } = pair;
      expect(masked([response, pair.message && kept(found)], dialect)).toEqual(
        masked([pair.response, pair.message], dialect),
      );
    },
  );

  test('nothing of our own form is left, whatever the reply was', async () => {
    for (const pair of pairs)
      expect(JSON.stringify(await publishedMessages([...PROMPT, historyOf(pair)], {}))).not.toContain(
        '"native"',
      );
  });

  test('a run that replayed another is exported alike, though it has no body of the provider', async () => {
    for (const pair of pairs.filter(({ message }) => message !== null)) {
      const { message, modelId, responseId, finishReason, rawUsage } = readOf(pair);
      const body = {
        ...{ id: responseId, object: 'chat.completion', model: modelId, usage: rawUsage },
        choices: [{ index: 0, message, finish_reason: finishReason }],
      };
      const extra = { actions: [], timestamp: AT, response: body };
      const [found] = (await publishedMessages([...PROMPT, { ...message, extra }], {})).slice(2);
      const said = masked(kept(found!), pair.dialect) as Json;
      expect(JSON.stringify(found)).not.toContain('"native"');
      if (pair.dialect !== 'responses') expect(said).toEqual(masked(pair.message, pair.dialect));
      else expect(said).toMatchObject({ object: 'response', output: pair.message!.output });
    }
  });

  test('calls, answers and actions of Gemini name the same ids', async () => {
    const pair = pairs.find(({ dialect, message }) => dialect === 'gemini' && message !== null)!;
    const { message, toolCalls } = readOf(pair);
    const actions = toolCalls.map(({ id }) => ({ command: 'x', tool_call_id: id }));
    const answers = toolCalls.map(({ id }) => ({ role: 'tool', content: 'o', tool_call_id: id, extra: {} }));
    const history = [...PROMPT, { ...message, extra: { actions, response: pair.body } }, ...answers];
    const [turn, ...told] = (await publishedMessages(history as Json[], {})).slice(2);
    const ids = (turn!.tool_calls as Json[]).map(({ id }) => id);
    expect(ids[0]).toContain('__thought__');
    expect(told.map((answer) => answer.tool_call_id)).toEqual(ids);
    expect(((turn!.extra as Json).actions as Json[]).map((action) => action.tool_call_id)).toEqual(ids);
  });

  test('arguments that the history has shortened stay short', async () => {
    const pair = pairs.find(({ dialect, message }) => dialect === 'responses' && message !== null)!;
    const { message } = readOf(pair);
    const [call] = message.tool_calls!;
    const shortened = {
      ...call!,
      id: 'own-1',
      function: { ...call!.function, arguments: '{"command":"short"}' },
    };
    const history = [
      ...PROMPT,
      { ...message, tool_calls: [shortened], extra: { response: pair.body } },
      { role: 'tool', tool_call_id: 'own-1', content: 'o', extra: { raw_output: 'o' } },
    ];
    const [turn, answer] = (await publishedMessages(history as Json[], {})).slice(2);
    expect(turn!.output).toContainEqual(
      expect.objectContaining({ type: 'function_call', call_id: 'own-1', arguments: '{"command":"short"}' }),
    );
    expect(answer).toEqual({
      type: 'function_call_output',
      call_id: 'own-1',
      output: 'o',
      extra: { raw_output: 'o' },
    });
  });

  test('services that mini-swe-agent asks without litellm keep the body as it came', async () => {
    const pair = pairs.find(({ dialect, message }) => dialect === 'responses' && message !== null)!;
    const model = { base_url: 'https://openrouter.ai/api/v1' };
    const [system, , turn] = await publishedMessages([...PROMPT, historyOf(pair)], model);
    expect(kept(turn!)).toEqual(pair.body);
    expect(system).toEqual({ type: 'message', role: 'system', content: [{ type: 'input_text', text: 's' }] });
  });

  test('a history of chat is given back as it is', async () => {
    const history = [...PROMPT, { role: 'assistant', content: 'x', extra: { response: { choices: [] } } }];
    expect(await publishedMessages(history, {})).toBe(history);
  });

  test('a broken body does not stop an export', async () => {
    for (const body of [
      { type: 'message', content: [{ type: 'text' }] },
      { candidates: [null] },
      { object: 'response', output: [] },
    ]) {
      const history = [...PROMPT, { role: 'assistant', content: 'x', extra: { response: body } }];
      expect(await publishedMessages(history, {})).toHaveLength(3);
    }
  });
});
