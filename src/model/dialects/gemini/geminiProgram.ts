/** Google's generateContent as programs speak it. Pure. */
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import {
  assistantOf,
  type CommonReply,
  type CommonRequest,
  fieldsOf,
  given,
  LONGEST_NAME,
  objectOfText,
  objectsOf,
  type ProgramSide,
  type Refusal,
  type RequestBody,
  type Route,
  recordedContent,
  recordedResult,
  recordedSystem,
  recordedTurn,
  STATUS,
  systemOf,
  textOf,
  toolCallOf,
  toolOf,
  unread,
  userOf,
  type WrittenReply,
} from '../programSide.ts';
import { asObject, asText } from '../shapes.ts';

const OPERATIONS: Readonly<Record<string, Route['operation']>> = {
  generateContent: 'generate',
  streamGenerateContent: 'stream',
  countTokens: 'count_tokens',
};

const ERRORS: Partial<Record<Refusal, string>> = {
  authentication: 'UNAUTHENTICATED',
  payment: 'FAILED_PRECONDITION',
  not_found: 'NOT_FOUND',
};

const errorBody = (refusal: Refusal, message: string): RequestBody => ({
  error: { code: STATUS[refusal], message, status: ERRORS[refusal] ?? 'INVALID_ARGUMENT' },
});

/** Kinds of tools that the program runs itself. */
const RUN_HERE = new Set(['functionDeclarations', 'function_declarations', 'computerUse', 'computer_use']);

export const geminiProgram: ProgramSide = {
  route(path, query) {
    const found = /^\/models\/([^/:]+):([A-Za-z]+)$/.exec(path);
    const operation = found && Object.hasOwn(OPERATIONS, found[2]!) ? OPERATIONS[found[2]!] : undefined;
    if (!found || !operation) return null;
    return operation === 'stream' && query.get('alt') !== 'sse'
      ? 'streams are served as server-sent events: add ?alt=sse'
      : { operation, model: safeDecode(found[1]!) };
  },
  sounds: /^\/v1(beta|alpha)/,
  known: fieldsOf(
    `model contents systemInstruction system_instruction tools toolConfig tool_config safetySettings safety_settings generationConfig
      generation_config labels generateContentRequest generate_content_request`,
  ),
  toolFields: [],
  stateFields: ['cachedContent', 'cached_content'],
  sortTools(list) {
    const names: string[] = [];
    const kept = list.flatMap((tool) => {
      const entries = Object.entries(asObject(tool) ?? {});
      const own = entries.filter(([name]) => RUN_HERE.has(name));
      for (const [name] of entries) if (!RUN_HERE.has(name)) names.push(name.slice(0, LONGEST_NAME));
      return own.length === 0 ? [] : [Object.fromEntries(own)];
    });
    return { kept, names };
  },
  recorded: geminiMessages,
  read: fromGemini,
  write: geminiAnswer,
  errorBody,
  // Google's client takes an event without candidates for an empty answer; one object alone, without `data:`, is an error to it.
  errorEvent: (refusal, message) => `${JSON.stringify(errorBody(refusal, message))}\n\n`,
  tooLong: (message) =>
    errorBody(
      'bad_request',
      `The input token count exceeds the maximum number of tokens allowed: ${message}`,
    ),
  modelList: (models) => ({
    models: models.map((name) => ({
      name: `models/${name}`,
      supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
    })),
  }),
  // Google's client for JavaScript takes a comment for the beginning of an event and then reads none; it skips empty lines.
  signOfLife: '\n\n',
};

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function geminiMessages(request: RequestBody): Message[] {
  const turns = objectsOf(request.contents).flatMap((turn): Message[] => {
    const parts = objectsOf(turn.parts);
    if (turn.role === 'model') {
      const texts = parts.flatMap((part) => (part.thought === true ? [] : (asText(part.text) ?? [])));
      const calls = objectsOf(parts.map((part) => part.functionCall));
      return [
        recordedTurn(
          texts.join('\n'),
          calls.map(({ id, name, args }) => toolCallOf(id ?? name, name, args)),
        ),
      ];
    }
    const results = objectsOf(parts.map((part) => part.functionResponse));
    const others = parts.filter((part) => !('functionResponse' in part));
    return [
      ...results.map(({ id, name, response }) => recordedResult(id ?? name, response)),
      ...(others.length > 0 ? [{ role: 'user' as const, content: recordedContent(others) }] : []),
    ];
  });
  return [
    ...recordedSystem(asObject(request.systemInstruction ?? request.system_instruction)?.parts),
    ...turns,
  ];
}

const READ = [
  ...['contents', 'systemInstruction', 'system_instruction', 'tools', 'toolConfig', 'tool_config'],
  ...['generationConfig', 'generation_config', 'model'],
];
const QUIET = ['safetySettings', 'safety_settings', 'labels'];
const GENERATION = [
  ...['temperature', 'topP', 'maxOutputTokens', 'stopSequences', 'seed', 'thinkingConfig'],
  ...['candidateCount', 'topK', 'presencePenalty', 'frequencyPenalty'],
];

/** Google writes types of a schema in capitals, where it is one of its own. */
function schemaOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(schemaOf);
  const object = asObject(value);
  if (!object) return value;
  return Object.fromEntries(
    Object.entries(object).map(([name, inner]) => [
      name,
      name === 'type' && typeof inner === 'string' ? inner.toLowerCase() : schemaOf(inner),
    ]),
  );
}

function toolsOf(request: RequestBody): ToolSpec[] {
  const declared = objectsOf(request.tools).flatMap((tool) =>
    objectsOf(tool.functionDeclarations ?? tool.function_declarations),
  );
  return declared.map(({ name, description, parameters, parametersJsonSchema }) =>
    toolOf(name, description, parametersJsonSchema ?? schemaOf(parameters)),
  );
}

/** Calls and their results may come without ids: they belong together by their names, in their order. */
function createIds() {
  let turn = 0;
  let open: { id: string; name: string }[] = [];
  return {
    calls(parts: readonly RequestBody[]): ToolCall[] {
      turn += 1;
      const calls = objectsOf(parts.map(({ functionCall, function_call }) => functionCall ?? function_call));
      const made = calls.map(({ id, name, args }, index) =>
        toolCallOf(asText(id) ?? `call_${turn}_${index}`, name, args),
      );
      open = made.map((call) => ({ id: call.id, name: call.function.name }));
      return made;
    },
    answered(result: RequestBody): string {
      const id = asText(result.id);
      const found = open.findIndex((call) => (id === null ? call.name === result.name : call.id === id));
      if (found < 0) return id ?? '';
      return open.splice(found, 1)[0]!.id;
    },
  };
}

function resultText(response: unknown): string {
  const output = asObject(response)?.output;
  return typeof output === 'string' ? output : JSON.stringify(response ?? {});
}

function messagesOf(request: RequestBody, left: Set<string>): Message[] {
  const ids = createIds();
  return objectsOf(request.contents).flatMap((turn): Message[] => {
    const parts = objectsOf(turn.parts);
    if (turn.role === 'model') {
      if (parts.some((part) => part.thought === true)) left.add('thinking');
      const texts = parts.flatMap((part) => (part.thought === true ? [] : [asText(part.text) ?? '']));
      return assistantOf(texts, ids.calls(parts));
    }
    const results = objectsOf(parts.map((part) => part.functionResponse ?? part.function_response));
    const others = parts.filter((part) => !('functionResponse' in part || 'function_response' in part));
    return [
      ...results.map(
        (result): Message => ({
          role: 'tool',
          tool_call_id: ids.answered(result),
          content: resultText(result.response),
        }),
      ),
      ...userOf(textOf(others, left)),
    ];
  });
}

const MODES: Readonly<Record<string, string>> = { AUTO: 'auto', ANY: 'required', NONE: 'none' };

function choiceOf(request: RequestBody): unknown {
  const config = asObject(request.toolConfig ?? request.tool_config);
  const calling = asObject(config?.functionCallingConfig ?? config?.function_calling_config);
  const allowed = calling?.allowedFunctionNames;
  if (calling?.mode === 'ANY' && Array.isArray(allowed) && allowed.length === 1)
    return { type: 'function', function: { name: allowed[0] as unknown } };
  return MODES[String(calling?.mode)];
}

function fromGemini(request: RequestBody): CommonRequest {
  const left = new Set<string>();
  unread(request, READ, QUIET, left);
  const generation = asObject(request.generationConfig ?? request.generation_config) ?? {};
  unread(generation, GENERATION, [], left);
  const instruction = asObject(request.systemInstruction ?? request.system_instruction);
  return {
    messages: [...systemOf(textOf(instruction?.parts, left)), ...messagesOf(request, left)],
    tools: toolsOf(request),
    parameters: given({
      max_tokens: generation.maxOutputTokens,
      temperature: generation.temperature,
      top_p: generation.topP,
      stop: generation.stopSequences,
      seed: generation.seed,
      reasoning_effort: asText(asObject(generation.thinkingConfig)?.thinkingLevel)?.toLowerCase(),
      tool_choice: choiceOf(request),
    }),
    left: [...left],
    origins: new Map(),
  };
}

const FINISH: Readonly<Record<string, string>> = { length: 'MAX_TOKENS', content_filter: 'SAFETY' };

function geminiAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const parts = [
    ...(content === '' ? [] : [{ text: content }]),
    ...toolCalls.map((call) => ({
      functionCall: {
        id: call.id,
        name: call.function.name,
        args: objectOfText(call.function.arguments),
      },
    })),
  ];
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const whole = {
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: FINISH[finish] ?? 'STOP' }],
    usageMetadata: {
      promptTokenCount: prompt,
      cachedContentTokenCount: usage.cacheRead,
      candidatesTokenCount: usage.output - usage.reasoning,
      thoughtsTokenCount: usage.reasoning,
      totalTokenCount: prompt + usage.output,
    },
    modelVersion: model,
    responseId: id,
  };
  return { whole, events: [[null, whole]] };
}
