// What providers send: bodies, streams, headers, errors, in every dialect.
import { snippet } from '../../../src/base/text/redact.ts';
import { classify } from '../../../src/model/classify.ts';
import type { Dialect } from '../../../src/model/dialects/dialect.ts';
import { DIALECT_NAMES } from '../../../src/model/dialects/dialects.ts';
import { dialectNamed, storedReply } from '../../../src/model/dialects/everyDialect.ts';
import { providerError } from '../../../src/model/dialects/providerError.ts';
import { knownModel } from '../../../src/model/knownModels.ts';
import { parseReset, rateHint, retryAfter } from '../../../src/model/limits/retryAfter.ts';
import { firstDifference, withoutVariable } from '../../../src/model/offline/replayed.ts';
import { isFreeName } from '../../../src/model/prices.ts';
import { type Reader, readersOf } from './reader.ts';

const jsonOrText = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

/** A whole body, and the same put into every place where a dialect looks for text. */
const BODIES: readonly ((text: string) => unknown)[] = [
  jsonOrText,
  (text) => ({
    choices: [{ message: { role: 'assistant', content: text, reasoning: text }, finish_reason: text }],
  }),
  (text) => ({
    id: text,
    choices: [
      {
        message: { tool_calls: [{ id: text, function: { name: text, arguments: text } }] },
        finish_reason: 'stop',
      },
    ],
  }),
  (text) => ({
    type: 'message',
    role: 'assistant',
    stop_reason: 'end_turn',
    content: [{ type: 'text', text }],
  }),
  (text) => ({
    type: 'message',
    role: 'assistant',
    stop_reason: 'tool_use',
    content: [{ type: 'tool_use', id: text, name: 'bash', input: { command: text } }],
  }),
  (text) => ({
    object: 'response',
    status: 'completed',
    output: [
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] },
      { type: 'function_call', call_id: text, name: 'bash', arguments: text },
    ],
  }),
  (text) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }] }),
  (text) => ({
    error: { message: text, code: text, type: text, details: [{ '@type': 'RetryInfo', retryDelay: text }] },
  }),
  (text) => ({ error: text, detail: text, message: text }),
];

function readBody(dialect: Dialect, text: string, at: number): void {
  const body = BODIES[at]!(text);
  dialect.read(body);
  dialect.readUsage(body);
}

function assembled(dialect: Dialect, text: string, at: number): void {
  const assembly = dialect.assemble();
  const body = BODIES[at]!(text);
  assembly.add(body, null);
  assembly.add({ type: 'content_block_start', index: 0, content_block: body });
  assembly.add({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
  assembly.add({ choices: [{ delta: { content: text, tool_calls: [{ function: { arguments: text } }] } }] });
  dialect.read(assembly.body());
}

const everyBody = (read: (text: string, at: number) => void): Record<string, (text: string) => unknown> =>
  Object.fromEntries(BODIES.map((_, at) => [`body ${at + 1}`, (text: string) => read(text, at)]));

const named = (name: string, reads: Record<string, (text: string) => unknown>) =>
  Object.fromEntries(Object.entries(reads).map(([body, read]) => [`${name}, ${body}`, read]));

export const DIALECTS: readonly Dialect[] = DIALECT_NAMES.map(dialectNamed);

const WORDS = [
  'data: ',
  'data:\n',
  'data: {}\n',
  'data: {}\n\n',
  'data: [DONE]\n',
  ':\n',
  'event: a\n',
  'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
  'data: {"type":"content_block_start","index":0}\n\n',
  '{"error":',
  'maximum context length',
  'context ',
  'input token count ',
];

export const MODEL_READERS: readonly Reader[] = [
  ...DIALECTS.flatMap((dialect) =>
    readersOf(
      {
        ...named(
          dialect.name,
          everyBody((text, at) => readBody(dialect, text, at)),
        ),
        ...named(
          `${dialect.name} streamed`,
          everyBody((text, at) => assembled(dialect, text, at)),
        ),
      },
      { words: WORDS },
    ),
  ),
  ...readersOf(
    {
      ...named(
        'providerError',
        everyBody((text, at) => providerError(BODIES[at]!(text))),
      ),
      ...named(
        'storedReply',
        everyBody((text, at) => storedReply(BODIES[at]!(text))),
      ),
      classify: (text) => classify({ message: text, code: text, type: text, status: 400 }),
      'classify without status': (text) => classify({ message: text }),
      snippet: (text) => snippet(text, (all) => all),
      knownModel,
      isFreeName,
      parseReset: (text) => parseReset(text, 0),
      retryAfter: (text) => retryAfter({ 'retry-after': text, 'retry-after-ms': text }, 0),
      rateHint: (text) =>
        rateHint({ 'x-ratelimit-remaining-requests': text, 'x-ratelimit-reset-requests': text }, 0, 60_000),
      firstDifference: (text) => firstDifference(text, `${text}a`),
      withoutVariable: (text) => withoutVariable(text),
    },
    { words: [...WORDS, '1d', '1h', '-2025-01-01', 'a/'] },
  ),
];
