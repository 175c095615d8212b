/** The last event of a streamed response carries all of it; what came before is kept for the case that it never comes. */
import type { Assembly } from '../dialect.ts';
import { asObject, asText } from '../shapes.ts';

const FINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);

export function assembleResponse(): Assembly {
  let final: Record<string, unknown> | null = null;
  let begun: Record<string, unknown> = {};
  let error: unknown = null;
  let characters = 0;
  const items = new Map<number, unknown>();
  return {
    add(data) {
      const event = asObject(data);
      const type = asText(event?.type) ?? '';
      if (!event) return;
      if (FINAL.has(type)) final = asObject(event.response);
      else if (type === 'response.created' || type === 'response.in_progress')
        begun = asObject(event.response) ?? begun;
      else if (type === 'response.output_item.done') items.set(Number(event.output_index), event.item);
      else if (type.endsWith('.delta')) characters += asText(event.delta)?.length ?? 0;
      else if (type === 'error' || 'error' in event) error = event.error ?? event;
    },
    body() {
      const output = [...items.entries()].sort(([a], [b]) => a - b).map(([, item]) => item);
      const { status: _underWay, ...facts } = begun;
      // Some gateways leave the output out of the last event, since every item came before.
      const whole = final ?? { ...facts, output };
      const stated = Array.isArray(whole.output) && whole.output.length > 0 ? whole : { ...whole, output };
      return error === null ? stated : { ...stated, error };
    },
    missing: () => (final === null ? 'its last event' : null),
    characters: () => characters,
  };
}
