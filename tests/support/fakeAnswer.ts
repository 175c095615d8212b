/** How the fake model server answers one request, faults included. */
import type { ServerResponse } from 'node:http';

/** What to do with one request. Without any of the fault fields it is answered with the reply. */
export interface Directive extends FakeReply {
  readonly status?: number;
  /** Sent instead of a completion: text as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Wait before anything is sent. */
  readonly delayMs?: number;
  /** Take the request and never answer. */
  readonly hang?: boolean;
  /** Announce the whole body, send half of it and break the connection. */
  readonly cut?: boolean;
  /** Send half of the JSON and end the response as if that were all. */
  readonly half?: boolean;
  /** Break the connection before a byte is sent. */
  readonly reset?: boolean;
  /** An HTML page, as a proxy sends it; status 502 unless given. */
  readonly html?: boolean;
  /** The body in pieces of `bytes`, one every `everyMs`. */
  readonly drip?: { readonly bytes: number; readonly everyMs: number };
  /** Streamed requests only: send this many chunks, then nothing more, with the connection open. */
  readonly silentAfter?: number;
  /** Streamed requests only: send this many chunks, then break the connection. */
  readonly cutAfter?: number;
  readonly before?: readonly (Directive | string)[];
}
export type Script = readonly (Directive | string)[];

const HTML = '<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center></body></html>';

/** Timers of answers under way, so that close leaves nothing behind. */
export type Later = (ms: number, run: () => void) => void;

function sendBody(
  response: ServerResponse,
  directive: Directive,
  status: number,
  text: string,
  later: Later,
) {
  const bytes = Buffer.from(text);
  const headers: Record<string, string> = {
    'content-type': directive.html ? 'text/html' : 'application/json',
    ...directive.headers,
  };
  if (directive.cut) {
    response.writeHead(status, { ...headers, 'content-length': String(bytes.length) });
    response.write(bytes.subarray(0, bytes.length >> 1), () => response.socket?.resetAndDestroy());
    return;
  }
  if (directive.half) {
    response.writeHead(status, headers).end(bytes.subarray(0, bytes.length >> 1));
    return;
  }
  response.writeHead(status, { ...headers, 'content-length': String(bytes.length) });
  const { drip } = directive;
  if (!drip) {
    response.end(bytes);
    return;
  }
  const step = (from: number) => {
    if (response.destroyed) return;
    if (from >= bytes.length) response.end();
    else {
      response.write(bytes.subarray(from, from + drip.bytes));
      later(drip.everyMs, () => step(from + drip.bytes));
    }
  };
  step(0);
}

function sendStream(response: ServerResponse, directive: Directive, chunks: readonly unknown[]) {
  response.writeHead(directive.status ?? 200, { 'content-type': 'text/event-stream', ...directive.headers });
  const limit = directive.silentAfter ?? directive.cutAfter ?? chunks.length;
  for (const chunk of chunks.slice(0, limit)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  if (directive.silentAfter !== undefined) return;
  if (directive.cutAfter !== undefined) response.write('', () => response.socket?.resetAndDestroy());
  else response.end('data: [DONE]\n\n');
}

export function answer(response: ServerResponse, directive: Directive, text: string, later: Later) {
  if (directive.hang) return;
  if (directive.reset) {
    response.socket?.resetAndDestroy();
    return;
  }
  const streamed = /"stream":\s*true/.test(text);
  const model = /"model":\s*"([^"]*)"/.exec(text)?.[1] ?? 'fake';
  if (directive.html) {
    sendBody(response, directive, directive.status ?? 502, HTML, later);
  } else if (directive.body !== undefined) {
    const body = typeof directive.body === 'string' ? directive.body : JSON.stringify(directive.body);
    sendBody(response, directive, directive.status ?? 200, body, later);
  } else if (directive.status !== undefined && directive.status >= 400) {
    const error = { message: `fake error ${directive.status}`, type: 'fake', code: null };
    sendBody(response, directive, directive.status, JSON.stringify({ error }), later);
  } else if (streamed) {
    sendStream(response, directive, completionChunks(directive, model, /"include_usage":\s*true/.test(text)));
  } else {
    sendBody(response, directive, 200, JSON.stringify(completionBody(directive, model)), later);
  }
}

/** Bodies of the OpenAI chat completions wire, whole and in stream chunks, made from a short description of a reply. */

interface FakeToolCall {
  readonly id?: string;
  readonly type?: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

interface FakeReply {
  readonly content?: unknown;
  readonly tool_calls?: readonly FakeToolCall[];
  readonly refusal?: string;
  readonly finish_reason?: string | null;
  /** Default: 10 in, 5 out. null leaves it out. */
  readonly usage?: unknown;
  /** The model id that the answer claims; default: the one asked for. */
  readonly model?: string;
  readonly fingerprint?: string;
}

const DEFAULT_USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

const idsFor = (calls: readonly FakeToolCall[]) =>
  calls.map((call, index) => ({ id: `call_${index}`, type: 'function', ...call }));

function head(reply: FakeReply, model: string, object: string) {
  return {
    id: 'chatcmpl-fake',
    object,
    created: 1,
    model: reply.model ?? model,
    ...(reply.fingerprint ? { system_fingerprint: reply.fingerprint } : {}),
  };
}

const finishOf = (reply: FakeReply) =>
  reply.finish_reason !== undefined ? reply.finish_reason : reply.tool_calls ? 'tool_calls' : 'stop';

const usageOf = (reply: FakeReply) => (reply.usage === undefined ? DEFAULT_USAGE : reply.usage);

export function completionBody(reply: FakeReply, model: string) {
  const message = {
    role: 'assistant',
    content: reply.content ?? null,
    ...(reply.refusal === undefined ? {} : { refusal: reply.refusal }),
    ...(reply.tool_calls ? { tool_calls: idsFor(reply.tool_calls) } : {}),
  };
  const usage = usageOf(reply);
  return {
    ...head(reply, model, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason: finishOf(reply) }],
    ...(usage === null ? {} : { usage }),
  };
}

/** Text comes three characters at a time, arguments of a tool call in two parts. */
export function completionChunks(reply: FakeReply, model: string, withUsage: boolean): unknown[] {
  const base = head(reply, model, 'chat.completion.chunk');
  const chunk = (delta: unknown, finish: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const chunks: unknown[] = [chunk({ role: 'assistant', content: reply.tool_calls ? null : '' })];
  const text = typeof reply.content === 'string' ? [...reply.content] : [];
  for (let at = 0; at < text.length; at += 3)
    chunks.push(chunk({ content: text.slice(at, at + 3).join('') }));
  if (reply.refusal !== undefined) chunks.push(chunk({ refusal: reply.refusal }));
  for (const [index, call] of idsFor(reply.tool_calls ?? []).entries()) {
    const { name, arguments: args } = call.function;
    const middle = args.length >> 1;
    chunks.push(
      chunk({ tool_calls: [{ ...call, index, function: { name, arguments: args.slice(0, middle) } }] }),
    );
    chunks.push(chunk({ tool_calls: [{ index, function: { arguments: args.slice(middle) } }] }));
  }
  chunks.push(chunk({}, finishOf(reply)));
  const usage = usageOf(reply);
  if (withUsage && usage !== null) chunks.push({ ...base, choices: [], usage });
  return chunks;
}
