/** A reply of the Messages API, plain and streamed. Pure. */
import { objectOfText } from './argumentText.ts';
import type { Body, CommonReply, WrittenReply } from './commonForm.ts';

const STOP: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
};

function eventsOf(block: Body, index: number): (readonly [string, Body])[] {
  const text = block.type === 'text';
  const content_block = text ? { ...block, text: '' } : { ...block, input: {} };
  const delta = text
    ? { type: 'text_delta', text: block.text }
    : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
  return [
    ['content_block_start', { index, content_block }],
    ['content_block_delta', { index, delta }],
    ['content_block_stop', { index }],
  ];
}

export function messagesAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const blocks: Body[] = [
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
    ...toolCalls.map((call) => ({
      ...{ type: 'tool_use', id: call.id, name: call.function.name },
      input: objectOfText(call.function.arguments),
    })),
  ];
  const base = { id: `msg_${id}`, type: 'message', role: 'assistant', model };
  const stop_reason = STOP[finish] ?? 'end_turn';
  const counted = {
    input_tokens: usage.input,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
    output_tokens: usage.output,
  };
  const ending = { stop_reason, stop_sequence: null };
  const started = { ...base, content: [], stop_reason: null, stop_sequence: null };
  const events: (readonly [string, Body])[] = [
    ['message_start', { message: { ...started, usage: { ...counted, output_tokens: 1 } } }],
    ...blocks.flatMap(eventsOf),
    ['message_delta', { delta: ending, usage: { output_tokens: usage.output } }],
    ['message_stop', {}],
  ];
  return {
    whole: { ...base, content: blocks, ...ending, usage: counted },
    events: events.map(([type, data]) => [type, { type, ...data }]),
  };
}
