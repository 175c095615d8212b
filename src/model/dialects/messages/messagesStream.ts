/** Puts the events of a streamed Messages reply together to the body that a plain one would have been. */
import type { Assembly } from '../dialect.ts';
import { asObject, asText } from '../shapes.ts';

type Fields = Record<string, unknown>;

/** The field of a block that grows, by the kind of its delta. */
const GROWS: Readonly<Record<string, { readonly from: string; readonly to: string }>> = {
  text_delta: { from: 'text', to: 'text' },
  thinking_delta: { from: 'thinking', to: 'thinking' },
  signature_delta: { from: 'signature', to: 'signature' },
  input_json_delta: { from: 'partial_json', to: 'unread_input' },
};

interface Growing {
  readonly start: Fields;
  /** Pieces by field; joined once at the end, so that many small pieces cost no more than few. */
  readonly pieces: Map<string, string[]>;
}

function whole({ start, pieces }: Growing): Fields {
  const block: Fields = { ...start };
  for (const [field, parts] of pieces) block[field] = `${asText(start[field]) ?? ''}${parts.join('')}`;
  if (block.type !== 'tool_use') return block;
  const { unread_input: written, ...call } = block;
  if (!asText(written)) return { ...call, input: call.input ?? {} };
  try {
    return { ...call, input: JSON.parse(written as string) as unknown };
  } catch {
    return { ...call, input: {}, unread_input: written };
  }
}

export function assembleMessages(): Assembly {
  let head: Fields = {};
  let usage: Fields | null = null;
  let error: unknown = null;
  let stopped: Fields = {};
  let characters = 0;
  const blocks = new Map<number, Growing>();

  const addUsage = (stated: unknown) => {
    const known = Object.entries(asObject(stated) ?? {}).filter(([, value]) => value !== null);
    if (known.length > 0) usage = { ...usage, ...Object.fromEntries(known) };
  };
  const grow = (data: Fields) => {
    const delta = asObject(data.delta);
    const rule = GROWS[String(delta?.type)];
    const piece = rule && asText(delta?.[rule.from]);
    const block = blocks.get(Number(data.index));
    if (!rule || !piece || !block) return;
    characters += piece.length;
    const parts = block.pieces.get(rule.to) ?? [];
    parts.push(piece);
    block.pieces.set(rule.to, parts);
  };

  return {
    add(data) {
      const event = asObject(data);
      switch (event?.type) {
        case 'message_start': {
          const { usage: stated, content: _empty, ...rest } = asObject(event.message) ?? {};
          head = rest;
          addUsage(stated);
          break;
        }
        case 'content_block_start':
          blocks.set(Number(event.index), { start: asObject(event.content_block) ?? {}, pieces: new Map() });
          break;
        case 'content_block_delta':
          grow(event);
          break;
        case 'message_delta':
          stopped = { ...stopped, ...asObject(event.delta) };
          addUsage(event.usage);
          break;
        case 'error':
          error = event.error ?? event;
          break;
        default:
          // A gateway may answer with an error that is not an event of the API.
          if (event && 'error' in event) error = event.error;
      }
    },
    body() {
      const content = [...blocks.entries()].sort(([a], [b]) => a - b).map(([, block]) => whole(block));
      return {
        ...head,
        content,
        ...stopped,
        ...(usage ? { usage } : {}),
        ...(error === null ? {} : { error }),
      };
    },
    missing: () => (asText(stopped.stop_reason) === null ? 'a stop reason' : null),
    characters: () => characters,
  };
}
