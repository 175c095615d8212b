/** All dialects, for those who meet any of them: readers of recordings, and the gateway, which translates. Whoever imports this loads all. */
import type { Dialect } from './dialect.ts';
import { DIALECT_NAMES, DIALECTS, type DialectName } from './dialects.ts';
import { asObject } from './shapes.ts';

const EVERY: ReadonlyMap<DialectName, Dialect> = new Map(
  await Promise.all(DIALECT_NAMES.map(async (name) => [name, await DIALECTS[name].load()] as const)),
);

export const dialectNamed = (name: DialectName): Dialect => EVERY.get(name)!;

/**
 * A recorded reply of any dialect in the form of chat completions, in which replies are played again. What is of no other dialect is given
 * back as it is. What goes back to the provider next turn stays in `native`.
 */
export function asChatBody(raw: unknown): unknown {
  const body = asObject(raw);
  const dialect = body && [...EVERY.values()].find((one) => one.wrote?.(body));
  if (!dialect) return raw;
  const read = dialect.read(body);
  if (read.kind !== 'reply') return raw;
  const { message, modelId, responseId, finishReason } = read.reply;
  return { id: responseId, model: modelId, choices: [{ index: 0, message, finish_reason: finishReason }] };
}
