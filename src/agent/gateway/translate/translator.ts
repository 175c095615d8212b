/**
 * A program of one protocol with a model of another: its request is written anew for the provider, and the provider's reply for the
 * program. One for each attempt: what a model thought before a call goes back to it with that call, which the program never saw.
 */
import { randomBytes } from 'node:crypto';
import type { DialectName } from '../../../model/dialects/dialects.ts';
import { asObject } from '../../../model/dialects/shapes.ts';
import type { Message, ModelReply, Usage, WireAnswer } from '../../../model/model.ts';
import type { Outcome } from '../answer.ts';
import { chatAnswer } from './chatAnswer.ts';
import type { Body, CommonReply, CommonRequest, WrittenReply } from './commonForm.ts';
import { errorAnswer } from './errorAnswer.ts';
import { fromChat } from './fromChat.ts';
import { fromGemini } from './fromGemini.ts';
import { fromMessages } from './fromMessages.ts';
import { fromResponses } from './fromResponses.ts';
import { geminiAnswer } from './geminiAnswer.ts';
import { messagesAnswer } from './messagesAnswer.ts';
import { responsesAnswer } from './responsesAnswer.ts';
import { type ProviderTarget, toProvider } from './toProvider.ts';

const READERS: Readonly<Record<DialectName, (request: Body) => CommonRequest>> = {
  chat: fromChat,
  responses: fromResponses,
  messages: fromMessages,
  gemini: fromGemini,
};

const WRITERS: Readonly<
  Record<DialectName, (reply: CommonReply, origins: CommonRequest['origins']) => WrittenReply>
> = {
  chat: chatAnswer,
  responses: responsesAnswer,
  messages: messagesAnswer,
  gemini: geminiAnswer,
};

export interface TranslatedAsk {
  /** Of the program. */
  readonly dialect: DialectName;
  readonly body: Uint8Array;
  readonly modelAsked: string;
  readonly target: ProviderTarget;
}

/** What the program gets: bytes of a success with their type, or an error. */
export type TranslatedAnswer =
  | { readonly kind: 'reply'; readonly type: string; readonly text: string }
  | { readonly kind: 'failed'; readonly outcome: Outcome };

export interface Translation {
  readonly body: Buffer;
  /** What is not carried. */
  readonly left: readonly string[];
  answer(result: WireAnswer): TranslatedAnswer;
}

export interface Translator {
  translate(ask: TranslatedAsk): Translation;
}

const NOTHING: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** Turns that programs send back are found by the calls in them. */
const turnKey = (message: Message): string | null =>
  message.tool_calls?.length ? JSON.stringify(message.tool_calls.map(({ id }) => id)) : null;

/** A reply that is none: the model said nothing, or refused. The program is to hear that in its own words. */
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

export function createTranslator(): Translator {
  const said = new Map<string, Message>();
  const remembered = (message: Message): Message => said.get(turnKey(message) ?? '') ?? message;
  return {
    translate({ dialect, body, modelAsked, target }) {
      const request = asObject(JSON.parse(Buffer.from(body).toString('utf8'))) ?? {};
      const common = READERS[dialect](request);
      const messages = common.messages.map((message) =>
        message.role === 'assistant' ? remembered(message) : message,
      );
      const written = toProvider({ ...common, messages }, target);
      const tell = (reply: Partial<ModelReply> & Pick<ModelReply, 'content' | 'finishReason'>) => {
        const { content, toolCalls = [], finishReason, usage } = reply;
        const finish = finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop');
        const id = randomBytes(12).toString('hex');
        const answer = WRITERS[dialect](
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
