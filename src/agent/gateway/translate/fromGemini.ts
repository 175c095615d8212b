/** A request of generateContent in the common form. Pure. */

import { asObject, asText } from '../../../model/dialects/shapes.ts';
import type { Message, ToolCall, ToolSpec } from '../../../model/model.ts';
import {
  assistantOf,
  type CommonReply,
  type CommonRequest,
  given,
  objectOfText,
  objectsOf,
  type RequestBody,
  systemOf,
  textOf,
  toolCallOf,
  toolOf,
  unread,
  userOf,
  type WrittenReply,
} from './commonForm.ts';

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

export function fromGemini(request: RequestBody): CommonRequest {
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

export function geminiAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const parts = [
    ...(content === '' ? [] : [{ text: content }]),
    ...toolCalls.map((call) => ({
      functionCall: {
        ...{ id: call.id, name: call.function.name },
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
