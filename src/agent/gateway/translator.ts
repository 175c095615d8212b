/**
 * A program of one protocol with a model of another: its request is written anew for the provider, and the provider's reply for the
 * program. One for each attempt: what a model thought before a call goes back to it with that call, which the program never saw.
 */

import { randomBytes } from 'node:crypto';
import { sha256 } from '../../base/sha256.ts';
import type { DialectName } from '../../model/dialects/dialects.ts';
import { dialectNamed } from '../../model/dialects/everyDialect.ts';
import type { CommonRequest, RequestBody, WrittenReply } from '../../model/dialects/programSide.ts';
import { providerError } from '../../model/dialects/providerError.ts';
import { asObject } from '../../model/dialects/shapes.ts';
import { knownModel } from '../../model/knownModels.ts';
import type { Message, ModelReply, Usage, WireAnswer } from '../../model/model.ts';
import { modelConfigSchema } from '../../model/modelConfig.ts';
import { checkedParameters } from '../../model/parameters/checkParameters.ts';
import type { AnswerOutcome } from './answer.ts';
import { sideOf } from './routes.ts';

interface TranslatedAsk {
  /** The dialect of the program. */
  readonly dialect: DialectName;
  readonly body: Uint8Array;
  readonly modelAsked: string;
  readonly target: ProviderTarget;
}

/** The answer for the program: bytes of a success with their type, or an error. */
type TranslatedAnswer =
  | { readonly kind: 'reply'; readonly type: string; readonly text: string }
  | { readonly kind: 'failed'; readonly outcome: AnswerOutcome };

export interface Translation {
  readonly body: Buffer;
  /** Fields that are not carried. */
  readonly left: readonly string[];
  answer(result: WireAnswer): TranslatedAnswer;
}

const NOTHING: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** Turns that programs send back are found by the calls in them, and turns without any by their text. */
function turnKey({ tool_calls: calls, content }: Message): string | null {
  if (calls?.length) return JSON.stringify(calls.map(({ id }) => id));
  return typeof content === 'string' && content !== '' ? `text ${sha256(content)}` : null;
}

/**
 * A reply that is none: the model said nothing, or refused. The program is to hear that in its own words (observed:
 * tests/agent/gateway/translateForms.test.ts).
 */
function withoutReply({ response }: WireAnswer): Pick<ModelReply, 'content' | 'finishReason'> | null {
  const kind = response.success ? null : response.metadata?.kind;
  if (kind === 'refusal') return { content: '', finishReason: 'content_filter' };
  return kind === 'empty' ? { content: '', finishReason: 'stop' } : null;
}

function sse({ events }: WrittenReply): string {
  return events
    .map(([name, data]) => {
      const text = typeof data === 'string' ? data : JSON.stringify(data);
      return `${name === null ? '' : `event: ${name}\n`}data: ${text}\n\n`;
    })
    .join('');
}

export function createTranslator() {
  const said = new Map<string, Message>();
  const remembered = (message: Message): Message => said.get(turnKey(message) ?? '') ?? message;
  return {
    translate({ dialect, body, modelAsked, target }: TranslatedAsk): Translation {
      const request = asObject(JSON.parse(Buffer.from(body).toString('utf8'))) ?? {};
      const common = sideOf(dialect).read(request);
      const messages = common.messages.map((message) =>
        message.role === 'assistant' ? remembered(message) : message,
      );
      const written = toProvider({ ...common, messages }, target);
      const tell = (reply: Partial<ModelReply> & Pick<ModelReply, 'content' | 'finishReason'>) => {
        const { content, toolCalls = [], finishReason, usage } = reply;
        const finish = finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop');
        const id = randomBytes(12).toString('hex');
        const answer = sideOf(dialect).write(
          { id, model: modelAsked, content, toolCalls, finish, usage: usage ?? NOTHING },
          common.origins,
        );
        return target.streamed
          ? ({ kind: 'reply', type: 'text/event-stream', text: sse(answer) } as const)
          : ({ kind: 'reply', type: 'application/json', text: JSON.stringify(answer.whole) } as const);
      };
      return {
        body: written.body,
        left: [...new Set([...common.left, ...written.left])],
        answer(result) {
          const { response } = result;
          if (response.success) {
            const key = turnKey(response.result.message);
            if (key !== null) said.set(key, response.result.message);
            return tell(response.result);
          }
          const silent = withoutReply(result);
          return silent ? tell(silent) : { kind: 'failed', outcome: errorAnswer(dialect, result) };
        },
      };
    },
  };
}

function messageIn(text: string): string {
  try {
    return providerError(JSON.parse(text))?.message ?? text.slice(0, 2000);
  } catch {
    return text.slice(0, 2000);
  }
}

function errorAnswer(
  dialect: DialectName,
  { response, refused }: WireAnswer,
): Extract<AnswerOutcome, { kind: 'refused' }> {
  const message = refused ? messageIn(refused.text) : response.message;
  const long = !response.success && response.metadata?.kind === 'context';
  const side = sideOf(dialect);
  const body = long ? side.tooLong(message) : side.errorBody('bad_request', message);
  return {
    kind: 'refused',
    status: 400,
    headers: { 'content-type': 'application/json' },
    text: JSON.stringify(body),
  };
}

interface ProviderTarget {
  readonly dialect: DialectName;
  /** The id over the wire, and the name by which its abilities are known. */
  readonly model: string;
  readonly name: string;
  readonly streamed: boolean;
}

/** The answer may not be longer than the model's longest; servers refuse what asks for more. */
function lengthOf(asked: unknown, { dialect, name }: ProviderTarget): RequestBody {
  if (typeof asked !== 'number') return {};
  const known = knownModel(name);
  const longest = known?.output ? Math.min(asked, known.output) : asked;
  return dialect === 'chat' && known?.maker === 'openai' && known.reasoning
    ? { max_completion_tokens: longest }
    : { max_tokens: longest };
}

/** How hard a model is to think is said to models that are known to think only: others refuse the word. */
function parametersFor(
  parameters: RequestBody,
  target: ProviderTarget,
): { kept: RequestBody; left: string[] } {
  const { max_tokens: longest, reasoning_effort: effort, tool_choice: choice, ...rest } = parameters;
  const efforts = knownModel(target.name)?.efforts;
  const thinks = typeof effort === 'string' && (efforts?.includes(effort) ?? false);
  const kwargs = {
    ...rest,
    ...lengthOf(longest, target),
    ...(thinks && { reasoning_effort: effort }),
    ...(choice !== undefined && choice !== 'auto' && { tool_choice: choice }),
  };
  const { model_kwargs: kept } = checkedParameters({
    model_name: target.name,
    dialect: target.dialect,
    model_kwargs: kwargs,
    drop_params: true,
  }).model;
  const dropped = Object.keys(kwargs).filter((name) => !(name in kept));
  return { kept, left: [...dropped, ...(effort !== undefined && !thinks ? ['reasoning effort'] : [])] };
}

/** Two protocols have one place for instructions, before the conversation: what comes later is said where it stands. */
function instructed(messages: readonly Message[], dialect: DialectName): readonly Message[] {
  if (dialect === 'chat' || dialect === 'responses') return messages;
  const begun = messages.findIndex(({ role }) => role !== 'system');
  return messages.map((message, index) =>
    message.role === 'system' && begun >= 0 && index > begun
      ? { ...message, role: 'user' as const }
      : message,
  );
}

function toProvider(
  request: CommonRequest,
  target: ProviderTarget,
): { body: Buffer; left: readonly string[] } {
  const { dialect, model, name, streamed } = target;
  const { kept, left } = parametersFor(request.parameters, target);
  const config = modelConfigSchema.parse({
    model_name: name,
    dialect,
    stream: streamed,
    model_kwargs: request.tools.length > 0 ? kept : withoutTools(kept),
  });
  const writer = dialectNamed(dialect).createWriter(config, model, 'own');
  const tools = request.tools.length > 0 ? request.tools : undefined;
  const body = Buffer.from(writer.write(instructed(request.messages, dialect), tools));
  return { body, left };
}

const withoutTools = ({
  tool_choice: _choice,
  parallel_tool_calls: _parallel,
  ...rest
}: RequestBody): RequestBody => rest;
