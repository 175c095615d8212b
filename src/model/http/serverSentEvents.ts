/** Reads a body of server-sent events. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { StreamEvent } from '../dialects/dialect.ts';

/** A line of a stream that is not JSON: the stream was cut inside it, or something on the way wrote into it. */
class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent';
}

/** OpenAI's word for the end; the other dialects end with an event of their own. */
const DONE = '[DONE]';

function parse({ event, data }: EventSourceMessage): StreamEvent {
  try {
    return { event: event ?? null, data: JSON.parse(data) };
  } catch (error) {
    throw new UnreadableEvent((error as Error).message);
  }
}

/**
 * The events of a body, as they come. A body that is not an event stream at all (some gateways send plain JSON under this content type)
 * gives no event; `other` hears what it was. Rejects with UnreadableEvent, and with whatever the body rejects with.
 */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  other: (text: string) => void,
): AsyncGenerator<StreamEvent> {
  // A mark that stands inside a text belongs to it; Node's decoder would take it away at the beginning of a chunk.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const ready: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => ready.push(event) });
  let plain: string | null = '';
  for await (const bytes of body) {
    const text = decoder.decode(bytes, { stream: true });
    if (plain !== null) {
      plain += text;
      const first = plain.trimStart()[0];
      if (first === undefined) continue;
      if (first === '{' || first === '[') continue;
      parser.feed(plain);
      plain = null;
    } else parser.feed(text);
    for (const event of ready.splice(0)) {
      if (event.data.startsWith(DONE)) return;
      yield parse(event);
    }
  }
  if (plain) other(plain + decoder.decode());
  // The last event of a body counts also without the empty line that should end it.
  else parser.reset({ consume: true });
  for (const event of ready) {
    if (event.data.startsWith(DONE)) return;
    yield parse(event);
  }
}
