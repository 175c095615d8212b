/** Puts the chunks of a streamed completion together to the body that a plain one would have been. */
import { z } from 'zod';
import type { Assembly } from '../dialect.ts';

const deltaCall = z.looseObject({
  index: z.number().int().min(0).optional(),
  id: z.string().nullish(),
  function: z.looseObject({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

const chunkSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z.looseObject({ tool_calls: z.array(deltaCall).nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
});

interface PartialCall {
  id: string | null;
  name: string;
  arguments: string;
}

/** Texts that grow piece by piece; reasoning has a different name at each provider. */
const TEXT_FIELDS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const;

export function assembleStream(): Assembly {
  const head: Record<string, unknown> = {};
  const texts = new Map<string, string>();
  const calls = new Map<number, PartialCall>();
  const problems: unknown[] = [];
  let finish: string | null = null;
  let usage: unknown = null;
  let sawChoice = false;
  let characters = 0;

  function addCall(delta: z.output<typeof deltaCall>, position: number): void {
    const index = delta.index ?? position;
    const call = calls.get(index) ?? { id: null, name: '', arguments: '' };
    if (delta.id) call.id = delta.id;
    // The name comes whole; servers that repeat it in every chunk must not have it doubled.
    if (delta.function?.name && call.name === '') call.name = delta.function.name;
    call.arguments += delta.function?.arguments ?? '';
    characters += delta.function?.arguments?.length ?? 0;
    calls.set(index, call);
  }

  return {
    add(chunk) {
      const parsed = chunkSchema.safeParse(chunk);
      if (!parsed.success) {
        problems.push(chunk);
        return;
      }
      const { choices, usage: stated, ...rest } = parsed.data;
      if (rest.error !== undefined && rest.error !== null) head.error = rest.error;
      for (const name of ['id', 'model', 'created', 'system_fingerprint']) head[name] ??= rest[name];
      if (stated !== undefined && stated !== null) usage = stated;
      const choice = choices?.[0];
      if (!choice) return;
      sawChoice = true;
      finish = choice.finish_reason ?? finish;
      for (const name of TEXT_FIELDS) {
        const piece = choice.delta?.[name];
        if (typeof piece !== 'string') continue;
        texts.set(name, (texts.get(name) ?? '') + piece);
        characters += piece.length;
      }
      for (const [position, delta] of (choice.delta?.tool_calls ?? []).entries()) addCall(delta, position);
    },
    body() {
      const toolCalls = [...calls.entries()]
        .sort(([a], [b]) => a - b)
        .map(([, call]) => ({
          id: call.id,
          type: 'function',
          function: { name: call.name, arguments: call.arguments },
        }));
      const message = {
        role: 'assistant',
        content: texts.get('content') || null,
        ...Object.fromEntries([...texts].filter(([name]) => name !== 'content')),
        ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
      };
      return {
        ...head,
        object: 'chat.completion',
        choices: sawChoice ? [{ index: 0, message, finish_reason: finish }] : [],
        ...(usage === null ? {} : { usage }),
        ...(problems.length > 0 ? { unread_chunks: problems.length } : {}),
      };
    },
    // The end of a stream looks like any other pause: only a finish reason says that the reply is whole.
    missing: () => (finish === null ? 'a finish reason' : null),
    characters: () => characters,
  };
}
