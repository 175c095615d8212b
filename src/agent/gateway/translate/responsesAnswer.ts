/** A reply of the Responses API, plain and streamed. Pure. */
import { objectOfText } from './argumentText.ts';
import type { Body, CommonReply, ToolOrigin, WrittenReply } from './commonForm.ts';

type Origins = ReadonlyMap<string, ToolOrigin>;

function callItem(call: CommonReply['toolCalls'][number], index: number, id: string, origins: Origins): Body {
  const { name, arguments: written } = call.function;
  const origin = origins.get(name);
  const base = { id: `fc_${id}_${index}`, call_id: call.id, status: 'completed', name: origin?.name ?? name };
  const space = origin?.namespace === undefined ? {} : { namespace: origin.namespace };
  if (!origin?.custom) return { type: 'function_call', ...base, ...space, arguments: written };
  const { input } = objectOfText(written);
  return { type: 'custom_tool_call', ...base, ...space, input: typeof input === 'string' ? input : written };
}

/** What a client is told of an item between its beginning and its end. */
function deltas(item: Body, output_index: number): (readonly [string, Body])[] {
  const at = { item_id: item.id, output_index };
  if (item.type === 'message') {
    const [part] = item.content as Body[];
    const where = { ...at, content_index: 0 };
    return [
      ['response.content_part.added', { ...where, part: { ...part, text: '' } }],
      ['response.output_text.delta', { ...where, delta: part!.text }],
      ['response.output_text.done', { ...where, text: part!.text }],
      ['response.content_part.done', { ...where, part }],
    ];
  }
  const [kind, text] =
    item.type === 'function_call'
      ? (['function_call_arguments', item.arguments] as const)
      : (['custom_tool_call_input', item.input] as const);
  const said = item.type === 'function_call' ? { arguments: text } : { input: text };
  return [
    [`response.${kind}.delta`, { ...at, delta: text }],
    [`response.${kind}.done`, { ...at, ...said }],
  ];
}

function begun(item: Body): Body {
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] };
  return { ...item, status: 'in_progress', ...('arguments' in item ? { arguments: '' } : { input: '' }) };
}

const CUT: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

export function responsesAnswer(reply: CommonReply, origins: Origins): WrittenReply {
  const { id, model, content, toolCalls, finish, usage } = reply;
  const part = { type: 'output_text', text: content, annotations: [] };
  const said = { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content: [part] };
  const output: Body[] = [
    ...(content === '' ? [] : [said]),
    ...toolCalls.map((call, index) => callItem(call, index, id, origins)),
  ];
  const input = usage.input + usage.cacheRead + usage.cacheWrite;
  const reason = CUT[finish];
  const base = { id: `resp_${id}`, object: 'response', created_at: Math.floor(Date.now() / 1000), model };
  const whole = {
    ...base,
    status: reason === undefined ? 'completed' : 'incomplete',
    incomplete_details: reason === undefined ? null : { reason },
    error: null,
    output,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: usage.cacheRead },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: input + usage.output,
    },
  };
  const open = { ...base, status: 'in_progress', error: null, output: [], usage: null };
  const events: (readonly [string, Body])[] = [
    ['response.created', { response: open }],
    ['response.in_progress', { response: open }],
    ...output.flatMap((item, output_index) => [
      ['response.output_item.added', { output_index, item: begun(item) }] as const,
      ...deltas(item, output_index),
      ['response.output_item.done', { output_index, item }] as const,
    ]),
    [`response.${whole.status}`, { response: whole }],
  ];
  return {
    whole,
    events: events.map(([type, data], sequence_number) => [type, { type, sequence_number, ...data }]),
  };
}
