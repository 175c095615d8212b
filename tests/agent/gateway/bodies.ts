// One request and one answer of each dialect, plain and streamed, with the usage that its ledger row must show.
import type { DialectName } from '../../../src/model/dialects/dialects.ts';

export interface Sample {
  readonly dialect: DialectName;
  readonly path: string;
  readonly streamPath: string;
  readonly request: Record<string, unknown>;
  readonly streamRequest: Record<string, unknown>;
  readonly answer: Record<string, unknown>;
  readonly events: readonly string[];
  /** How many of the events there are up to the first word. */
  readonly untilWords: number;
  /** As providers are asked for a key. */
  readonly keyHeader: (key: string) => Record<string, string>;
}

const MODEL = 'm-1';
const tool = { name: 'bash', description: 'run', parameters: { type: 'object' } };
const data = (value: unknown, event?: string): string =>
  `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(value)}\n\n`;

const completion = {
  id: 'c1',
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
};
const chatRequest = {
  model: MODEL,
  messages: [{ role: 'user', content: 'fix 1.0' }],
  tools: [{ type: 'function', function: tool }],
};
const chat: Sample = {
  dialect: 'chat',
  path: '/v1/chat/completions',
  streamPath: '/v1/chat/completions',
  request: chatRequest,
  streamRequest: { ...chatRequest, stream: true },
  answer: completion,
  untilWords: 1,
  events: [
    data({ id: 'c1', model: MODEL, choices: [{ index: 0, delta: { role: 'assistant', content: 'h' } }] }),
    data({ id: 'c1', model: MODEL, choices: [{ index: 0, delta: { content: 'i' }, finish_reason: 'stop' }] }),
    data({ id: 'c1', model: MODEL, choices: [], usage: completion.usage }),
    'data: [DONE]\n\n',
  ],
  keyHeader: (key) => ({ authorization: `Bearer ${key}` }),
};

const response = {
  id: 'r1',
  object: 'response',
  model: MODEL,
  status: 'completed',
  output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] }],
  usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18, input_tokens_details: { cached_tokens: 0 } },
};
const responsesRequest = {
  model: MODEL,
  input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'fix' }] }],
  tools: [{ type: 'function', ...tool }],
};
const responses: Sample = {
  dialect: 'responses',
  path: '/v1/responses',
  streamPath: '/v1/responses',
  request: responsesRequest,
  streamRequest: { ...responsesRequest, stream: true },
  answer: response,
  untilWords: 2,
  events: [
    data({ type: 'response.created', response: { id: 'r1', status: 'in_progress' } }, 'response.created'),
    data({ type: 'response.output_text.delta', delta: 'hi' }, 'response.output_text.delta'),
    data({ type: 'response.completed', response }, 'response.completed'),
  ],
  keyHeader: chat.keyHeader,
};

const message = {
  id: 'm1',
  type: 'message',
  role: 'assistant',
  model: MODEL,
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 11, output_tokens: 7 },
};
const messagesRequest = {
  model: MODEL,
  max_tokens: 100,
  system: [{ type: 'text', text: 'be brief' }],
  messages: [{ role: 'user', content: 'fix' }],
  tools: [{ name: 'bash', input_schema: { type: 'object' } }],
};
const messages: Sample = {
  dialect: 'messages',
  path: '/v1/messages?beta=true',
  streamPath: '/v1/messages?beta=true',
  request: messagesRequest,
  streamRequest: { ...messagesRequest, stream: true },
  answer: message,
  untilWords: 3,
  events: [
    data(
      {
        type: 'message_start',
        message: {
          ...message,
          content: [],
          stop_reason: null,
          usage: { input_tokens: 11, output_tokens: 1 },
        },
      },
      'message_start',
    ),
    data(
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      'content_block_start',
    ),
    data(
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
      'content_block_delta',
    ),
    data({ type: 'content_block_stop', index: 0 }, 'content_block_stop'),
    data(
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } },
      'message_delta',
    ),
    data({ type: 'message_stop' }, 'message_stop'),
  ],
  keyHeader: (key) => ({ 'x-api-key': key }),
};

const generated = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
  modelVersion: MODEL,
  responseId: 'g1',
};
const geminiRequest = {
  contents: [{ role: 'user', parts: [{ text: 'fix' }] }],
  tools: [{ functionDeclarations: [tool] }],
};
const gemini: Sample = {
  dialect: 'gemini',
  path: `/v1beta/models/${MODEL}:generateContent`,
  streamPath: `/v1beta/models/${MODEL}:streamGenerateContent?alt=sse`,
  request: geminiRequest,
  streamRequest: geminiRequest,
  answer: generated,
  untilWords: 1,
  events: [data({ candidates: [{ content: { role: 'model', parts: [{ text: 'h' }] } }] }), data(generated)],
  keyHeader: (key) => ({ 'x-goog-api-key': key }),
};

export const SAMPLES: readonly Sample[] = [chat, responses, messages, gemini];
export const sampleOf = (dialect: DialectName): Sample => SAMPLES.find((one) => one.dialect === dialect)!;
