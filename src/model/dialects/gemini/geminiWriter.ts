/** From messages to the bytes of a generateContent request. */
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { RequestStyle, RequestWriter } from '../dialect.ts';
import { stringify } from '../growingBuffer.ts';
import { createListWriter, createTail, systemContents, type Unit } from '../listWriter.ts';
import { asObject, contentText } from '../shapes.ts';
import { geminiParameters } from './geminiParameters.ts';

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

export function createGeminiWriter(config: ModelConfig, _model: string, style: RequestStyle): RequestWriter {
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
