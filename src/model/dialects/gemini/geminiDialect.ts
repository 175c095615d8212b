/** Google's generateContent. */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { tokenCount as count } from '../../../base/plausible.ts';
import { unicodeLine } from '../../../base/python/json.ts';
import { contentText } from '../../../base/text/contentText.ts';
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import {
  type AnswerFacts,
  type Assembly,
  type Dialect,
  NO_FACTS,
  type ReadResult,
  type ReadUsage,
  type RequestStyle,
  type RequestWriter,
} from '../dialect.ts';
import { finishOf } from '../finish.ts';
import { extraHeaders, sentParameters } from '../kwargs.ts';
import { createListWriter, createTail, stringify, systemContents, type Unit } from '../listWriter.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, firstIssue } from '../shapes.ts';
export const geminiDialect: Dialect = {
  name: 'gemini',
  wrote: ({ candidates }) => Array.isArray(candidates),
  target: (config, model, apiKey) => ({
    path: `/models/${encodeURIComponent(model)}:${config.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: { 'x-goog-api-key': apiKey, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => geminiParameters(config, tools, 'own'),
  createWriter: createGeminiWriter,
  read: readGenerated,
  factsOf: geminiFacts,
  readUsage: readUsageMetadata,
  assemble: assembleGenerated,
};

/** Names of chat completions and their names in generationConfig. */
const GENERATION: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  max_tokens: 'maxOutputTokens',
  max_completion_tokens: 'maxOutputTokens',
  stop: 'stopSequences',
  seed: 'seed',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
};

/** Tokens of thought for an effort, for the models that count them; Gemini 3 and later take a level. */
const BUDGETS: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 128,
  low: 1024,
  medium: 2048,
  high: 4096,
};
const TAKES_LEVEL = /gemini-([3-9]|\d\d)/;

function thinkingOf(effort: unknown, thinking: unknown, model: string): Record<string, unknown> {
  const asked = asObject(thinking);
  if (asked)
    return 'budget_tokens' in asked
      ? { thinkingConfig: { thinkingBudget: asked.budget_tokens, includeThoughts: true } }
      : { thinkingConfig: asked };
  if (typeof effort !== 'string') return {};
  if (TAKES_LEVEL.test(model)) return { thinkingConfig: { thinkingLevel: effort, includeThoughts: true } };
  return {
    thinkingConfig: { thinkingBudget: BUDGETS[effort] ?? effort, includeThoughts: effort !== 'none' },
  };
}

const MODES: Readonly<Record<string, string>> = { auto: 'AUTO', none: 'NONE', required: 'ANY' };

function choiceOf(choice: unknown): Record<string, unknown> {
  if (choice === undefined) return {};
  const name = asObject(asObject(choice)?.function)?.name;
  const functionCallingConfig =
    typeof name === 'string'
      ? { mode: 'ANY', allowedFunctionNames: [name] }
      : { mode: MODES[String(choice)] ?? choice };
  return { toolConfig: { functionCallingConfig } };
}

const listed = (name: string, value: unknown): unknown =>
  name === 'stopSequences' && typeof value === 'string' ? [value] : value;

/** Every field beside `contents` and the system prompt. */
function geminiParameters(
  config: ModelConfig,
  tools: readonly ToolSpec[] | undefined,
  style: RequestStyle,
): Record<string, unknown> {
  const {
    // One or several calls a turn is the model's own choice here.
    parallel_tool_calls: _parallel,
    tool_choice: choice,
    reasoning_effort: effort,
    thinking,
    generationConfig: given,
    ...rest
  } = sentParameters(config.model_kwargs);
  const model = config.model_name ?? '';
  const named = Object.entries(rest).filter(([name]) => name in GENERATION);
  const others = Object.entries(rest).filter(([name]) => !(name in GENERATION));
  const generationConfig = {
    // litellm sets it for Gemini 3, whose maker advises against any other.
    ...(style === 'litellm' && TAKES_LEVEL.test(model) ? { temperature: 1 } : {}),
    ...Object.fromEntries(
      named.map(([name, value]) => [GENERATION[name]!, listed(GENERATION[name]!, value)] as const),
    ),
    ...thinkingOf(effort, thinking, model),
    ...asObject(given),
  };
  const declarations = style === 'litellm' ? 'function_declarations' : 'functionDeclarations';
  const hasTools = tools !== undefined && tools.length > 0;
  return {
    ...Object.fromEntries(others),
    ...(hasTools
      ? {
          tools: [
            {
              [declarations]: tools.map(({ function: { name, description, parameters } }) => ({
                name,
                description,
                parameters,
              })),
            },
          ],
          ...choiceOf(choice),
        }
      : {}),
    ...(Object.keys(generationConfig).length > 0 ? { generationConfig } : {}),
  };
}

type Part = Readonly<Record<string, unknown>>;

const text = (value: string): Part[] => (value === '' ? [] : [{ text: value }]);

function argsOf({ function: { arguments: written } }: ToolCall): unknown {
  try {
    return asObject(JSON.parse(written)) ?? {};
  } catch {
    return {};
  }
}

/** litellm writes names with underscores, gives every call an id and sends it, and keeps thought apart. */
function asLitellm(part: Part, call: ToolCall | undefined): Part[] {
  if (part.thought === true) return [];
  const called = asObject(part.functionCall);
  if (!called) {
    const { thoughtSignature: _kept, ...rest } = part;
    return [rest];
  }
  const { functionCall: _renamed, ...rest } = part;
  return [{ function_call: { ...called, id: call?.id }, ...rest }];
}

function assistantParts(message: Message, style: RequestStyle): Part[] {
  const calls = message.tool_calls ?? [];
  if (message.native?.dialect === 'gemini') {
    const parts = message.native.content as Part[];
    if (style === 'own') return parts;
    let next = 0;
    return parts.flatMap((part) => asLitellm(part, part.functionCall ? calls[next++] : undefined));
  }
  return [
    ...text(contentText(message.content)),
    ...calls.map((call) => ({ functionCall: { name: call.function.name, args: argsOf(call) } })),
  ];
}

const nativeId = (message: Message | undefined, id: string): boolean =>
  message?.native?.dialect === 'gemini' &&
  (message.native.content as Part[]).some((part) => asObject(part.functionCall)?.id === id);

/** The answer names the function that was called, which a message of chat completions does not. */
function resultPart(message: Message, asked: Message | undefined, style: RequestStyle): Part {
  const id = message.tool_call_id ?? '';
  const name = asked?.tool_calls?.find((call) => call.id === id)?.function.name ?? 'bash';
  const said = contentText(message.content);
  if (style === 'litellm') return { function_response: { name, response: { content: said }, id } };
  return {
    functionResponse: { name, response: { output: said }, ...(nativeId(asked, id) ? { id } : {}) },
  };
}

const contentOf = (role: string, parts: readonly Part[]): string => stringify({ role, parts });

/** Results of one turn go back together; everything else is a content of its own. */
function unitsOf(messages: readonly Message[], style: RequestStyle): Unit[] {
  const units: Unit[] = [];
  let asked: Message | undefined;
  let results: Message[] = [];
  const close = () => {
    const [from, by] = [results, asked];
    if (from.length > 0)
      units.push({
        from,
        json: () =>
          contentOf(
            'user',
            from.map((message) => resultPart(message, by, style)),
          ),
      });
    results = [];
  };
  for (const message of messages) {
    if (message.role === 'system' || message.role === 'exit') continue;
    if (message.role === 'tool') {
      results.push(message);
      continue;
    }
    close();
    const assistant = message.role === 'assistant';
    if (assistant) asked = message;
    if (assistant ? !says(message) : contentText(message.content) === '') continue;
    units.push({
      from: [message],
      json: () =>
        assistant
          ? contentOf('model', assistantParts(message, style))
          : contentOf('user', text(contentText(message.content))),
    });
  }
  close();
  return units;
}

/** A content without a part is refused. */
function says(message: Message): boolean {
  if (message.native?.dialect === 'gemini') return (message.native.content as Part[]).length > 0;
  return (message.tool_calls?.length ?? 0) > 0 || contentText(message.content) !== '';
}

function createGeminiWriter(config: ModelConfig, _model: string, style: RequestStyle): RequestWriter {
  const list = createListWriter('{"contents":[');
  const system = style === 'litellm' ? 'system_instruction' : 'systemInstruction';
  const tail = createTail(([tools, ...contents]) => {
    const parts = contents.flatMap((content) => text(contentText(content)));
    const rest = stringify({
      ...(parts.length > 0 ? { [system]: { parts } } : {}),
      ...geminiParameters(config, tools as readonly ToolSpec[] | undefined, style),
    });
    return rest === '{}' ? ']}' : `],${rest.slice(1)}`;
  });
  return {
    write(messages, tools) {
      const units = unitsOf(messages, style);
      // The last unit may hold results, and more of them may follow.
      return list.write(units, units.length - 1, tail(tools, ...systemContents(messages)));
    },
  };
}

const partSchema = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  functionCall: z
    .looseObject({ id: z.string().optional(), name: z.string(), args: z.unknown().optional() })
    .optional(),
});
type ReadPart = z.output<typeof partSchema>;

const candidateSchema = z.looseObject({
  content: z.looseObject({ parts: z.array(partSchema).nullish() }).nullish(),
  finishReason: z.string().nullish(),
  finishMessage: z.string().nullish(),
});

const firstCandidate = (body: Record<string, unknown>): Record<string, unknown> | null =>
  asObject(Array.isArray(body.candidates) ? body.candidates[0] : null);

const callsOf = (candidate: Record<string, unknown> | null): boolean => {
  const parts = asObject(candidate?.content)?.parts;
  return Array.isArray(parts) && parts.some((part) => asObject(part)?.functionCall !== undefined);
};

export function geminiFacts(body: Record<string, unknown>): AnswerFacts {
  const candidate = firstCandidate(body);
  // A prompt that was blocked has no reply.
  const reason = asText(candidate?.finishReason) ?? (candidate ? null : blockReasonOf(body));
  const named = finishOf(reason);
  return {
    modelId: asText(body.modelVersion),
    responseId: asText(body.responseId),
    fingerprint: null,
    finishReason: named === 'stop' && callsOf(candidate) ? 'tool_calls' : named,
    rawUsage: body.usageMetadata ?? null,
  };
}

/** Calls mostly come without an id, and the answer must name one: the same reply gives the same ids. */
const idFor = (facts: AnswerFacts, signature: unknown, index: number): string =>
  `call_${createHash('sha256')
    .update(`${facts.responseId} ${String(signature)} ${index}`)
    .digest('hex')
    .slice(0, 28)}`;

function callOf(part: ReadPart, index: number, facts: AnswerFacts): ToolCall {
  const { id, name, args } = part.functionCall!;
  return {
    id: id ?? idFor(facts, part.thoughtSignature ?? JSON.stringify(args), index),
    type: 'function',
    function: { name, arguments: unicodeLine(args ?? {}) },
  };
}

const blockReasonOf = (body: Record<string, unknown>): string | null =>
  asText(asObject(body.promptFeedback)?.blockReason);

/** `OTHER` and unknown words say nothing about the prompt. */
function blocked(body: Record<string, unknown>): string | null {
  const reason = blockReasonOf(body);
  if (reason === null || finishOf(reason) !== 'content_filter') return null;
  return `the prompt was blocked: ${asText(asObject(body.promptFeedback)?.blockReasonMessage) ?? reason}`;
}

export function readGenerated(body: unknown): ReadResult {
  const object = asObject(Array.isArray(body) ? body[0] : body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = geminiFacts(object);
  if (object.error !== undefined && object.error !== null) {
    const error = providerError(object);
    if (error) return { kind: 'error_object', facts, error };
  }
  const candidate = firstCandidate(object);
  if (!candidate) {
    const refused = blocked(object);
    if (refused !== null) return { kind: 'refusal', facts, message: refused };
    return { kind: 'empty', facts, message: 'the reply has no candidates' };
  }
  const parsed = candidateSchema.safeParse(candidate);
  if (!parsed.success)
    return { kind: 'malformed', facts, message: `candidates.0.${firstIssue(parsed.error)}` };
  const reason = parsed.data.finishReason ?? '';
  const why = parsed.data.finishMessage ? `: ${parsed.data.finishMessage}` : '';
  if (facts.finishReason === 'content_filter')
    return { kind: 'refusal', facts, message: `the reply was stopped (${reason})${why}` };
  const parts = parsed.data.content?.parts ?? [];
  const content = parts.flatMap((part) => (part.thought === true ? [] : [part.text ?? ''])).join('');
  const thought = parts.flatMap((part) => (part.thought === true ? [part.text ?? ''] : [])).join('');
  const calls = parts.flatMap((part, index) => (part.functionCall ? [callOf(part, index, facts)] : []));
  if (calls.length === 0 && content.trim() === '' && facts.finishReason !== 'length')
    return {
      kind: 'empty',
      facts,
      message: `the reply has neither text nor tool calls${reason === 'STOP' ? '' : ` (${reason})`}${why}`,
    };
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(thought === '' ? {} : { reasoning_content: thought }),
    native: { dialect: 'gemini', content: asObject(candidate.content)?.parts ?? [] },
  } as Message;
  return { kind: 'reply', reply: { ...facts, message, content, toolCalls: calls } };
}

type Fields = Record<string, unknown>;

/** Text grows from event to event; a part with a call or a signature is whole. */
const grows = (part: Fields): boolean =>
  typeof part.text === 'string' && Object.keys(part).every((key) => key === 'text' || key === 'thought');

interface Grown {
  readonly part: Fields;
  readonly pieces: string[];
}

function assembleGenerated(): Assembly {
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
    characters: () => characters,
  };
}

const schema = z.looseObject({
  promptTokenCount: count.nullish(),
  toolUsePromptTokenCount: count.nullish(),
  cachedContentTokenCount: count.nullish(),
  candidatesTokenCount: count.nullish(),
  thoughtsTokenCount: count.nullish(),
  totalTokenCount: count.nullish(),
});

const unusable = (why: string): ReadUsage => ({ usage: null, cacheWrite1h: 0, notes: [why] });

/** `raw` is any value under `usageMetadata`. Never throws. */
export function readUsageMetadata(raw: unknown): ReadUsage {
  if (raw === null || raw === undefined) return unusable('usage missing');
  const parsed = schema.safeParse(raw);
  if (!parsed.success) return unusable(`usage unusable: ${firstIssue(parsed.error)}`);
  const {
    promptTokenCount: prompt,
    cachedContentTokenCount: cached,
    thoughtsTokenCount: thoughts,
  } = parsed.data;
  if (prompt === null || prompt === undefined) return unusable('usage missing: no token counts in it');
  const cacheRead = cached ?? 0;
  const input = prompt + (parsed.data.toolUsePromptTokenCount ?? 0) - cacheRead;
  if (input < 0) return unusable(`usage unusable: ${cacheRead} read from a cache of ${prompt} in`);
  const reasoning = thoughts ?? 0;
  const output = (parsed.data.candidatesTokenCount ?? 0) + reasoning;
  const total = parsed.data.totalTokenCount ?? Number.POSITIVE_INFINITY;
  if (total < prompt + output)
    return unusable(`usage unusable: ${total} tokens in all of ${prompt} in and ${output} out`);
  if (input + cacheRead === 0) return unusable('usage unusable: not one token in');
  return { usage: { input, cacheRead, cacheWrite: 0, output, reasoning }, cacheWrite1h: 0, notes: [] };
}
