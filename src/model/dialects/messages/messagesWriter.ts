/** From messages to the bytes of a Messages request, with the marks that tell the provider what to keep in its cache. */

import type { Message, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { RequestStyle, RequestWriter } from '../dialect.ts';
import { createGrowingBuffer, isAsWritten, stringify } from '../growingBuffer.ts';
import { messagesParameters } from './messagesParameters.ts';
import { type Block, systemBlocks, type Turn, turnsOf } from './turns.ts';

const EPHEMERAL = { cache_control: { type: 'ephemeral' } };

/** The mark goes on the last block. */
function marked(blocks: readonly Block[]): readonly Block[] {
  const last = blocks.length - 1;
  return blocks.map((block, index) => (index === last ? { ...block, ...EPHEMERAL } : block));
}

/** mini-swe-agent makes text a list of parts where it sets its mark. */
function asLitellmMarks(blocks: readonly Block[]): readonly Block[] {
  return marked(blocks).map((block) =>
    'cache_control' in block && typeof block.content === 'string'
      ? { ...block, content: [{ type: 'text', text: block.content }] }
      : block,
  );
}

interface WrittenTurn {
  readonly messages: readonly { message: Message; content: unknown; toolCalls: unknown; end: number }[];
  readonly end: number;
}

const isSame = (written: WrittenTurn, turn: Turn): boolean =>
  written.messages.length === turn.from.length &&
  written.messages.every((message, index) => isAsWritten(message, turn.from[index]!));

/**
 * Which turns carry a mark. Our own way marks the last two of the user: the second one from the end is where the call before left its
 * mark, so what it stored is found again. mini-swe-agent marks the end alone.
 */
function marksOf(turns: readonly Turn[], ways: number): ReadonlySet<number> {
  const asked = turns.flatMap((turn, index) => (turn.role === 'user' ? [index] : []));
  return new Set(ways === 0 ? [] : asked.slice(-ways));
}

const USER_MARKS = 2;

export function createMessagesWriter(config: ModelConfig, model: string, style: RequestStyle): RequestWriter {
  const { headEnd, put, bytes } = createGrowingBuffer(`{"model":${JSON.stringify(model)},"messages":[`);
  const written: WrittenTurn[] = [];
  const own = style === 'own';
  const mark = own ? marked : asLitellmMarks;
  const ways = own ? USER_MARKS : config.set_cache_control === 'default_end' ? 1 : 0;
  let tail:
    | { readonly tools: unknown; readonly system: readonly unknown[]; readonly text: string }
    | undefined;

  function tailFor(messages: readonly Message[], tools: readonly ToolSpec[] | undefined): string {
    const system = messages.filter((message) => message.role === 'system').map(({ content }) => content);
    if (tail && tail.tools === tools && system.every((content, i) => content === tail?.system[i]))
      return tail.text;
    const blocks = systemBlocks(messages);
    const parameters = messagesParameters(config, tools);
    // The mark on the system prompt covers the tools too, which the provider puts before it.
    const kept = own && blocks.length > 0 ? marked(blocks) : blocks;
    const kit =
      own && blocks.length === 0 && parameters.tools ? { tools: marked(parameters.tools as Block[]) } : {};
    const rest = stringify({ ...parameters, ...kit, ...(kept.length > 0 ? { system: kept } : {}) });
    tail = { tools, system, text: `],${rest.slice(1)}` };
    return tail.text;
  }

  return {
    write(messages, tools) {
      const turns = turnsOf(messages);
      const marks = marksOf(turns, ways);
      // What carries a mark, or may grow, is written again at each call; the turns before it never are.
      const settled = Math.min(turns.length - 1, ...marks);
      let same = 0;
      while (same < written.length && same < settled && isSame(written[same]!, turns[same]!)) same += 1;
      written.length = same;
      let end = written.at(-1)?.end ?? headEnd;
      for (const [index, turn] of turns.entries()) {
        if (index < same) continue;
        const blocks = marks.has(index) ? mark(turn.blocks()) : turn.blocks();
        end = put((end === headEnd ? '' : ',') + stringify({ role: turn.role, content: blocks }), end);
        if (index < settled)
          written.push({
            messages: turn.from.map((message) => ({
              message,
              content: message.content,
              toolCalls: message.tool_calls,
              end,
            })),
            end,
          });
      }
      return bytes(put(tailFor(messages, tools), end));
    },
  };
}
