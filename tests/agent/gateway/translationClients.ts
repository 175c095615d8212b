// A small agent of each protocol: it calls its model in turns, runs what is called for, and says what came of it, over real HTTP. It reads
// answers by the readers of the built-in agent, so that an answer that breaks the rules of its protocol is a failure here.
import { createParser } from 'eventsource-parser';
import { missingEnd, type ReadReply } from '../../../src/model/dialects/dialect.ts';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import { dialectNamed } from '../../../src/model/dialects/everyDialect.ts';

type Body = Record<string, unknown>;

interface Client {
  readonly path: (streamed: boolean) => string;
  readonly key: (key: string) => Record<string, string>;
  /** The body of the first request. */
  readonly first: Body;
  /** Adds the model's turn and the results of its calls. */
  readonly next: (body: Body, answer: Body, reply: ReadReply, result: (id: string) => string) => Body;
}

export const SYSTEM = 'You fix things.';
export const TASK = 'Fix the thing.';
const SCHEMA = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
const DESCRIPTION = 'Runs a command.';

const chat: Client = {
  path: () => '/v1/chat/completions',
  key: (key) => ({ authorization: `Bearer ${key}` }),
  first: {
    messages: [
      { role: 'system', content: SYSTEM },
      { role: 'user', content: TASK },
    ],
    tools: [{ type: 'function', function: { name: 'bash', description: DESCRIPTION, parameters: SCHEMA } }],
    max_tokens: 500,
  },
  next: (body, answer, { toolCalls }, result) => ({
    ...body,
    messages: [
      ...(body.messages as unknown[]),
      (answer.choices as { message: unknown }[])[0]!.message,
      ...toolCalls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result(id) })),
    ],
  }),
};

const responses: Client = {
  path: () => '/v1/responses',
  key: chat.key,
  first: {
    instructions: SYSTEM,
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: TASK }] }],
    tools: [{ type: 'function', name: 'bash', description: DESCRIPTION, parameters: SCHEMA, strict: false }],
    max_output_tokens: 500,
    store: false,
  },
  next: (body, answer, { toolCalls }, result) => ({
    ...body,
    input: [
      ...(body.input as unknown[]),
      ...(answer.output as unknown[]),
      ...toolCalls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: result(id) })),
    ],
  }),
};

const messages: Client = {
  path: () => '/v1/messages',
  key: (key) => ({ 'x-api-key': key }),
  first: {
    system: [{ type: 'text', text: SYSTEM, cache_control: { type: 'ephemeral' } }],
    messages: [{ role: 'user', content: [{ type: 'text', text: TASK }] }],
    tools: [{ name: 'bash', description: DESCRIPTION, input_schema: SCHEMA }],
    max_tokens: 500,
  },
  next: (body, answer, { toolCalls }, result) => ({
    ...body,
    messages: [
      ...(body.messages as unknown[]),
      { role: 'assistant', content: answer.content },
      {
        role: 'user',
        content: toolCalls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: result(id) })),
      },
    ],
  }),
};

const gemini: Client = {
  path: (streamed) => `/v1beta/models/m-1:${streamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  key: (key) => ({ 'x-goog-api-key': key }),
  first: {
    systemInstruction: { parts: [{ text: SYSTEM }] },
    contents: [{ role: 'user', parts: [{ text: TASK }] }],
    tools: [
      {
        functionDeclarations: [{ name: 'bash', description: DESCRIPTION, parametersJsonSchema: SCHEMA }],
      },
    ],
    generationConfig: { maxOutputTokens: 500 },
  },
  next: (body, answer, { toolCalls }, result) => ({
    ...body,
    contents: [
      ...(body.contents as unknown[]),
      (answer.candidates as { content: unknown }[])[0]!.content,
      {
        role: 'user',
        parts: toolCalls.map(({ id, function: { name } }) => ({
          functionResponse: { id, name, response: { output: result(id) } },
        })),
      },
    ],
  }),
};

const CLIENTS: Readonly<Record<DialectName, Client>> = { chat, responses, messages, gemini };

export interface Answered {
  readonly status: number;
  readonly text: string;
  /** null where it was an error. */
  readonly body: Body | null;
  readonly reply: ReadReply | null;
}

export interface Programme {
  readonly dialect: DialectName;
  readonly streamed: boolean;
  readonly url: string;
  readonly key: string;
}

function bodyOf(dialect: DialectName, streamed: boolean, text: string): Body {
  if (!streamed) return JSON.parse(text) as Body;
  const assembly = dialectNamed(dialect).assemble();
  createParser({
    onEvent: ({ event, data }) => {
      if (data !== '[DONE]') assembly.add(JSON.parse(data), event ?? null);
    },
  }).feed(text);
  if (missingEnd(dialectNamed(dialect).factsOf(assembly.body())) !== null)
    throw new Error(`the stream has no end: ${text}`);
  return assembly.body();
}

export async function askAs({ dialect, streamed, url, key }: Programme, body: Body): Promise<Answered> {
  const { path, key: header } = CLIENTS[dialect];
  const sent = dialect === 'gemini' ? body : { model: 'm-1', stream: streamed, ...body };
  const answer = await fetch(`${url}${path(streamed)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...header(key) },
    body: JSON.stringify(sent),
  });
  const text = await answer.text();
  if (answer.status !== 200) return { status: answer.status, text, body: null, reply: null };
  const said = bodyOf(dialect, streamed, text);
  const read = dialectNamed(dialect).read(said);
  if (read.kind !== 'reply') throw new Error(`${read.kind}: ${text}`);
  return { status: 200, text, body: said, reply: read.reply };
}

export const firstOf = (dialect: DialectName, more: Body = {}): Body => ({
  ...CLIENTS[dialect].first,
  ...more,
});

/** Asks until the model calls for nothing more; returns its replies. */
export async function work(
  program: Programme,
  result: (id: string) => string,
  more: Body = {},
): Promise<ReadReply[]> {
  const replies: ReadReply[] = [];
  let body = firstOf(program.dialect, more);
  for (;;) {
    const { body: answer, reply, text } = await askAs(program, body);
    if (!answer || !reply) throw new Error(text);
    replies.push(reply);
    if (reply.toolCalls.length === 0) return replies;
    body = CLIENTS[program.dialect].next(body, answer, reply, result);
  }
}
