/** All dialects, for readers of recordings, and the gateway, which translates. An import of this file loads every dialect. */
import type { Dialect } from './dialect.ts';
import { DIALECT_NAMES, DIALECTS, type DialectName } from './dialects.ts';
import { asObject, asText } from './shapes.ts';

const EVERY: ReadonlyMap<DialectName, Dialect> = new Map(
  await Promise.all(DIALECT_NAMES.map(async (name) => [name, await DIALECTS[name].load()] as const)),
);

export const dialectNamed = (name: DialectName): Dialect => EVERY.get(name)!;

/** A reply as a recording keeps it: of a published trajectory, of a run of ours. */
export interface StoredReply {
  /** The reply in chat's form. Parts that go back to another dialect's provider next turn stay in `native` of the message. */
  readonly body: Record<string, unknown>;
  readonly message: Record<string, unknown>;
  readonly finishReason: string | null;
  readonly modelId: string | null;
  readonly responseId: string | null;
}

/** The one reader of recorded replies, of any dialect; null where there is no message in it. */
export function storedReply(raw: unknown): StoredReply | null {
  const body = asChatBody(raw);
  const first = asObject(Array.isArray(body?.choices) ? body.choices[0] : null);
  const message = asObject(first?.message);
  if (!body || !message) return null;
  const [finishReason, modelId, responseId] = [
    asText(first?.finish_reason),
    asText(body.model),
    asText(body.id),
  ];
  return { body, message, finishReason, modelId, responseId };
}

function asChatBody(raw: unknown): Record<string, unknown> | null {
  const body = asObject(raw);
  const read = body && [...EVERY.values()].find((one) => one.wrote?.(body))?.read(body);
  if (read?.kind !== 'reply') return body;
  const { message, modelId, responseId, finishReason } = read.reply;
  return { id: responseId, model: modelId, choices: [{ index: 0, message, finish_reason: finishReason }] };
}
