/**
 * A recorded history as mini-swe-agent 2.4.6 writes it to its trajectory file. The model classes there keep their client's form of a
 * reply: litellm's form of chat completions for Messages and Gemini, and the response itself for Responses. Chat is kept as it came.
 */

import { contentText } from '../../../base/text/contentText.ts';
import { DIALECTS, type DialectLine } from '../dialects.ts';
import { asObject } from '../shapes.ts';
import { type Json, type KeptReply, PROMPT, type PublishedForm, withoutNative } from './publishedForm.ts';

/** Classes that ask a service themselves keep its bodies as they are; the others have litellm's. */
const isKeptRaw = (model: unknown): boolean => {
  const { base_url: address, model_name: name } = asObject(model) ?? {};
  return (
    /openrouter\.ai|portkey\.ai/.test(String(address ?? '')) || String(name ?? '').startsWith('openrouter/')
  );
};

interface Turn {
  readonly body: Json;
  readonly native: Json | null;
  readonly recorded: KeptReply;
}

function turnOf(message: Json): Turn | null {
  const extra = asObject(message.extra);
  const body = asObject(extra?.response);
  const choice = asObject(asObject(Array.isArray(body?.choices) ? body.choices[0] : null)?.message);
  const native = asObject(message.native) ?? asObject(choice?.native);
  if (!body && !native) return null;
  const timestamp = extra?.timestamp;
  return {
    body: body ?? {},
    native,
    recorded: {
      body: body ?? {},
      native: native?.content,
      message: message.role === 'assistant' ? withoutNative(message) : null,
      at: typeof timestamp === 'number' ? Math.floor(timestamp) : 0,
    },
  };
}

/** The form of the protocol that a reply was given in; a replay's says it itself. Undefined for chat. */
async function formOf({ body, native }: Turn): Promise<PublishedForm | undefined> {
  const lines: Readonly<Record<string, DialectLine>> = DIALECTS;
  const published = async (line: DialectLine | undefined) =>
    (await line?.published?.()) as PublishedForm | undefined;
  if (native) return published(lines[String(native.dialect)]);
  if (Array.isArray(body.choices)) return undefined;
  for (const line of Object.values(DIALECTS)) {
    const { wrote } = await line.load();
    if (wrote?.(body)) return published(line);
  }
  return undefined;
}

/** `model` is the configuration of the model. Messages of chat are given back as they are. */
export async function publishedMessages(messages: readonly Json[], model: unknown): Promise<readonly Json[]> {
  const turns = messages.map(turnOf);
  const first = turns.find((turn) => turn !== null);
  const form = first && (await formOf(first));
  if (!form) return messages;
  const inText = !messages.some(({ tool_calls: calls }) => Array.isArray(calls));
  const history = messages.map((stored, index) => ({
    message: withPublishedExtra(stored, index, inText),
    recorded: turns[index]?.recorded ?? null,
  }));
  return form(history, isKeptRaw(model));
}

/** Messages to the model have no time there, and a format error has its own facts in each protocol. */
function withPublishedExtra(message: Json, index: number, inText: boolean): Json {
  const { extra: stored, ...said } = message;
  if (index < PROMPT) return said;
  const extra = asObject(stored);
  if (!extra || (message.role !== 'exit' && extra.interrupt_type === undefined)) return message;
  const { timestamp: _when, n_actions: found, ...rest } = extra;
  if (message.role === 'exit' || !inText) return { ...said, extra: rest };
  return { ...said, extra: { ...rest, n_actions: found, model_response: textOfReply(rest.response) } };
}

function textOfReply(response: unknown): string {
  const body = asObject(response);
  const parts =
    body?.content ??
    asObject(asObject(Array.isArray(body?.candidates) ? body.candidates[0] : null)?.content)?.parts;
  return contentText(parts);
}
