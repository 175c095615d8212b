/** Every event of a streamed generateContent is a reply with some more parts. */
import type { Assembly } from '../dialect.ts';
import { asObject, asText } from '../shapes.ts';

type Fields = Record<string, unknown>;

/** Text grows from event to event; a part with a call or a signature is whole. */
const grows = (part: Fields): boolean =>
  typeof part.text === 'string' && Object.keys(part).every((key) => key === 'text' || key === 'thought');

interface Grown {
  readonly part: Fields;
  readonly pieces: string[];
}

export function assembleGenerated(): Assembly {
  let head: Fields = {};
  let candidate: Fields = {};
  let error: unknown = null;
  let characters = 0;
  const parts: Grown[] = [];

  const addPart = (value: unknown) => {
    const part = asObject(value);
    if (!part) return;
    const text = asText(part.text) ?? '';
    characters += text.length;
    const last = parts.at(-1);
    const joins = last && grows(last.part) && grows(part) && last.part.thought === part.thought;
    if (joins) last.pieces.push(text);
    else parts.push({ part, pieces: [text] });
  };

  return {
    add(data) {
      const event = asObject(Array.isArray(data) ? data[0] : data);
      if (!event) return;
      if (event.error !== undefined && event.error !== null) error = event.error;
      const { candidates, error: _apart, ...rest } = event;
      head = { ...head, ...rest };
      const found = asObject(Array.isArray(candidates) ? candidates[0] : null);
      if (!found) return;
      const { content, ...facts } = found;
      candidate = { ...candidate, ...facts };
      const more = asObject(content)?.parts;
      if (Array.isArray(more)) for (const part of more) addPart(part);
    },
    body() {
      const whole = parts.map(({ part, pieces }) =>
        typeof part.text === 'string' ? { ...part, text: pieces.join('') } : part,
      );
      const begun = Object.keys(candidate).length > 0 || whole.length > 0;
      return {
        ...head,
        ...(begun ? { candidates: [{ ...candidate, content: { role: 'model', parts: whole } }] } : {}),
        ...(error === null ? {} : { error }),
      };
    },
    missing: () => {
      const blocked = asText(asObject(head.promptFeedback)?.blockReason);
      return asText(candidate.finishReason) === null && blocked === null ? 'a finish reason' : null;
    },
    characters: () => characters,
  };
}
