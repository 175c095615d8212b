/** Google's generateContent. */
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { Dialect, RequestStyle, RequestWriter } from '../dialect.ts';
import { extraHeaders, sentParameters } from '../kwargs.ts';
import { createListWriter, createTail, stringify, systemContents, type Unit } from '../listWriter.ts';
import { asObject, contentText } from '../shapes.ts';
import { assembleGenerated, geminiFacts, readGenerated, readUsageMetadata } from './geminiReply.ts';
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

/** Names of chat completions and what they are called in generationConfig. */
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
export function geminiParameters(
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
                ...{ name, description, parameters },
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
      // The last one may hold results, and more of them may follow.
      return list.write(units, units.length - 1, tail(tools, ...systemContents(messages)));
    },
  };
}
