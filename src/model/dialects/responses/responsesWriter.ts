/** From messages to the bytes of a Responses request: every message becomes items of one list. */
import { createHash } from 'node:crypto';
import type { Message, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { RequestStyle, RequestWriter } from '../dialect.ts';
import { stringify } from '../growingBuffer.ts';
import { createListWriter, createTail } from '../listWriter.ts';
import { contentText } from '../shapes.ts';
import { asLitellm, type Item } from './litellmItems.ts';
import { responsesParameters } from './responsesParameters.ts';

/** A reasoning item that the provider did not keep and did not encrypt cannot be found again. */
const isLost = (item: Item): boolean => item.type === 'reasoning' && !item.encrypted_content;

function assistantItems(message: Message, style: RequestStyle, stateless: boolean): Item[] {
  if (message.native?.dialect === 'responses') {
    const items = message.native.content as Item[];
    if (style === 'litellm') return items.map(asLitellm);
    return stateless ? items.filter((item) => !isLost(item)) : [...items];
  }
  const said = contentText(message.content);
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: 'function_call',
    call_id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  return [...(said === '' ? [] : [{ role: 'assistant', content: said }]), ...calls];
}

/** mini-swe-agent's response classes tell the model of a malformed reply by an item of their own. */
const isTold = (message: Message): boolean => message.extra?.interrupt_type !== undefined;

function itemsOf(message: Message, style: RequestStyle, stateless: boolean): Item[] {
  switch (message.role) {
    case 'exit':
      return [];
    case 'assistant':
      return assistantItems(message, style, stateless);
    case 'tool':
      return [
        {
          type: 'function_call_output',
          call_id: message.tool_call_id ?? '',
          output: contentText(message.content),
        },
      ];
    default: {
      const text = contentText(message.content);
      if (style === 'litellm' && isTold(message))
        return [{ type: 'message', role: message.role, content: [{ type: 'input_text', text }] }];
      return [{ role: message.role, content: text }];
    }
  }
}

/** Attempts of one task begin alike, and their requests go where that beginning is cached already. */
const cacheKey = (messages: readonly Message[]): string =>
  createHash('sha256')
    .update(JSON.stringify(messages.slice(0, 2).map(({ content }) => content)))
    .digest('hex')
    .slice(0, 32);

export function createResponsesWriter(
  config: ModelConfig,
  model: string,
  style: RequestStyle,
): RequestWriter {
  const list = createListWriter(`{"model":${JSON.stringify(model)},"input":[`);
  const stateless = responsesParameters(config, undefined, style).store === false;
  let key: string | undefined;
  const tail = createTail(([tools, prompt_cache_key]) => {
    const parameters = responsesParameters(config, tools as readonly ToolSpec[] | undefined, style);
    const keyed = prompt_cache_key === undefined ? parameters : { prompt_cache_key, ...parameters };
    const rest = stringify(keyed);
    return rest === '{}' ? ']}' : `],${rest.slice(1)}`;
  });
  return {
    write(messages, tools) {
      if (style === 'own') key ??= cacheKey(messages);
      const units = messages.flatMap((message) => {
        const hasItems = message.role !== 'exit' && (message.role !== 'assistant' || says(message));
        if (!hasItems) return [];
        const json = () => itemsOf(message, style, stateless).map(stringify).join(',');
        return [{ from: [message], json }];
      });
      return list.write(units, units.length, tail(tools, key));
    },
  };
}

/** An assistant message without an item would leave a comma in the list. */
function says(message: Message): boolean {
  if (message.native?.dialect === 'responses')
    return (message.native.content as Item[]).some((item) => item.type !== 'reasoning');
  return (message.tool_calls?.length ?? 0) > 0 || contentText(message.content) !== '';
}
