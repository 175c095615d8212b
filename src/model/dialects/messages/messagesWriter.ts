/** From messages to the bytes of a Messages request, with the marks that tell the provider what to keep in its cache. */

import type { Message, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import { type CacheMark, cacheMark } from '../cacheMark.ts';
import type { RequestStyle, RequestWriter } from '../dialect.ts';
import { stringify } from '../growingBuffer.ts';
import { createListWriter, createTail, systemContents } from '../listWriter.ts';
import { messagesParameters } from './messagesParameters.ts';
import { type Block, type Turn, textBlocks, turnsOf } from './turns.ts';

/** The mark goes on the last block. */
const markWith =
  (cache_control: CacheMark) =>
  (blocks: readonly Block[]): readonly Block[] =>
    blocks.map((block, index) => (index === blocks.length - 1 ? { ...block, cache_control } : block));

/** mini-swe-agent makes text a list of parts where it sets its mark. */
const withTextAsParts = (blocks: readonly Block[]): readonly Block[] =>
  blocks.map((block) =>
    'cache_control' in block && typeof block.content === 'string'
      ? { ...block, content: [{ type: 'text', text: block.content }] }
      : block,
  );

/**
 * Which turns carry a mark. Our own way marks the last two of the user: the second one from the end is where the call before left its
 * mark, so what it stored is found again. mini-swe-agent marks the end alone.
 */
function marksOf(turns: readonly Turn[], ways: number): ReadonlySet<number> {
  const asked = turns.flatMap((turn, index) => (turn.role === 'user' ? [index] : []));
  return new Set(ways === 0 ? [] : asked.slice(-ways));
}

const USER_MARKS = 2;

/** `first`: what the body begins with; clouds have the model in the path. */
export function createMessagesWriter(
  config: ModelConfig,
  model: string,
  style: RequestStyle,
  first: Readonly<Record<string, string>> = { model },
): RequestWriter {
  const list = createListWriter(`${JSON.stringify(first).slice(0, -1)},"messages":[`);
  const own = style === 'own';
  const marked = markWith(cacheMark(config.cache_ttl));
  const mark = own ? marked : (blocks: readonly Block[]) => withTextAsParts(marked(blocks));
  const ways = own ? USER_MARKS : config.set_cache_control === 'default_end' ? 1 : 0;

  const tail = createTail(([tools, ...system]) => {
    const blocks = system.flatMap((content) => textBlocks(content as Message['content']));
    const parameters = messagesParameters(config, tools as readonly ToolSpec[] | undefined);
    // The mark on the system prompt covers the tools too, which the provider puts before it.
    const kept = own && blocks.length > 0 ? marked(blocks) : blocks;
    const kit =
      own && blocks.length === 0 && parameters.tools ? { tools: marked(parameters.tools as Block[]) } : {};
    const rest = stringify({ ...parameters, ...kit, ...(kept.length > 0 ? { system: kept } : {}) });
    return `],${rest.slice(1)}`;
  });

  return {
    write(messages, tools) {
      const turns = turnsOf(messages);
      const marks = marksOf(turns, ways);
      const units = turns.map((turn, index) => ({
        from: turn.from,
        json: () =>
          stringify({ role: turn.role, content: marks.has(index) ? mark(turn.blocks()) : turn.blocks() }),
      }));
      // What carries a mark, or may grow, is written again at each call; the turns before it never are.
      const settled = Math.min(turns.length - 1, ...marks);
      return list.write(units, settled, tail(tools, ...systemContents(messages)));
    },
  };
}
