// A provider of any dialect that plays a script to a real client: the next turn follows from how many results of tools the request holds,
// so that a repeated request gets the same answer. Streamed where the client asks for it.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** What the model does in a turn: a call of one of the client's tools, or its last words. */
export type Turn =
  | {
      readonly tool: string;
      readonly args: Readonly<Record<string, unknown>>;
      /** Of Codex: where tools of a server are. */
      readonly namespace?: string;
    }
  | { readonly say: string };

export interface SeenRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface FakeProvider {
  readonly url: string;
  readonly requests: SeenRequest[];
  [Symbol.asyncDispose](): Promise<void>;
}

interface Answer {
  /** Events of the stream: name (or none) and data. */
  readonly events: readonly (readonly [name: string | null, data: unknown])[];
  readonly whole: unknown;
}

interface Speaks {
  /** How many answers of tools the conversation holds. */
  results(body: Record<string, unknown>): number;
  /** A small call beside the conversation, such as one for a title. */
  aside(body: Record<string, unknown>): boolean;
  answer(turn: Turn, n: number, model: string): Answer;
}

const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value : []);
const USED = { in: 1000, out: 50 };

const chat: Speaks = {
  results: (body) => list(body.messages).filter((m) => m.role === 'tool').length,
  aside: (body) => list(body.tools).length === 0,
  answer(turn, n, model) {
    const call = 'tool' in turn && {
      ...{ id: `call_${n}`, type: 'function' },
      function: { name: turn.tool, arguments: JSON.stringify(turn.args) },
    };
    const message = call
      ? { role: 'assistant', content: null, tool_calls: [call] }
      : { role: 'assistant', content: (turn as { say: string }).say };
    const finish_reason = call ? 'tool_calls' : 'stop';
    const usage = { prompt_tokens: USED.in, completion_tokens: USED.out, total_tokens: USED.in + USED.out };
    const base = { id: `chatcmpl-${n}`, created: 1, model };
    const chunk = (delta: unknown, end: string | null = null) =>
      [
        null,
        { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: end }] },
      ] as const;
    return {
      whole: { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage },
      events: [
        chunk(call ? { ...message, tool_calls: [{ index: 0, ...call }] } : message),
        chunk({}, finish_reason),
        [null, { ...base, object: 'chat.completion.chunk', choices: [], usage }],
        [null, '[DONE]'],
      ],
    };
  },
};

const responses: Speaks = {
  results: (body) => list(body.input).filter((i) => /_call_output$/.test(String(i.type))).length,
  aside: (body) => list(body.tools).length === 0,
  answer(turn, n, model) {
    const item =
      'tool' in turn
        ? {
            ...{
              type: 'function_call',
              id: `fc_${n}`,
              call_id: `call_${n}`,
              name: turn.tool,
              status: 'completed',
            },
            ...(turn.namespace !== undefined && { namespace: turn.namespace }),
            arguments: JSON.stringify(turn.args),
          }
        : {
            ...{ type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed' },
            content: [{ type: 'output_text', text: turn.say, annotations: [] }],
          };
    const whole = {
      ...{ id: `resp_${n}`, object: 'response', created_at: 1, status: 'completed', model, output: [item] },
      usage: {
        input_tokens: USED.in,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: USED.out,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: USED.in + USED.out,
      },
    };
    const event = (type: string, more: object) => [type, { type, ...more }] as const;
    return {
      whole,
      events: [
        event('response.created', { response: { ...whole, status: 'in_progress', output: [], usage: null } }),
        event('response.output_item.added', { output_index: 0, item }),
        event('response.output_item.done', { output_index: 0, item }),
        event('response.completed', { response: whole }),
      ],
    };
  },
};

const messages: Speaks = {
  results: (body) =>
    list(body.messages)
      .flatMap((m) => list(m.content))
      .filter((part) => part.type === 'tool_result').length,
  aside: (body) => list(body.tools).length === 0,
  answer(turn, n, model) {
    const block =
      'tool' in turn
        ? { type: 'tool_use', id: `toolu_${n}`, name: turn.tool, input: turn.args }
        : { type: 'text', text: turn.say };
    const stop_reason = 'tool' in turn ? 'tool_use' : 'end_turn';
    const usage = { input_tokens: USED.in, output_tokens: USED.out };
    const base = { id: `msg_${n}`, type: 'message', role: 'assistant', model };
    const event = (type: string, more: object) => [type, { type, ...more }] as const;
    const empty = 'tool' in turn ? { ...block, input: {} } : { type: 'text', text: '' };
    const delta =
      'tool' in turn
        ? { type: 'input_json_delta', partial_json: JSON.stringify(turn.args) }
        : { type: 'text_delta', text: turn.say };
    return {
      whole: { ...base, content: [block], stop_reason, stop_sequence: null, usage },
      events: [
        event('message_start', {
          message: { ...base, content: [], stop_reason: null, stop_sequence: null, usage },
        }),
        event('content_block_start', { index: 0, content_block: empty }),
        event('content_block_delta', { index: 0, delta }),
        event('content_block_stop', { index: 0 }),
        event('message_delta', {
          delta: { stop_reason, stop_sequence: null },
          usage: { output_tokens: USED.out },
        }),
        event('message_stop', {}),
      ],
    };
  },
};

const gemini: Speaks = {
  results: (body) =>
    list(body.contents)
      .flatMap((c) => list(c.parts))
      .filter((part) => 'functionResponse' in part).length,
  aside: (body) => list(body.tools).length === 0,
  answer(turn, n, model) {
    const part =
      'tool' in turn
        ? { functionCall: { id: `call_${n}`, name: turn.tool, args: turn.args } }
        : { text: turn.say };
    const whole = {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: {
        promptTokenCount: USED.in,
        candidatesTokenCount: USED.out,
        totalTokenCount: USED.in + USED.out,
      },
      modelVersion: model,
      responseId: `resp-${n}`,
    };
    return { whole, events: [[null, whole]] };
  },
};

const DIALECTS = [
  ['/chat/completions', chat],
  ['/responses', responses],
  ['/messages', messages],
  ['enerateContent', gemini],
] as const;

/** The turn after so many results of tools; undefined where the model is done. */
export type Turns = readonly Turn[] | ((seen: SeenRequest, results: number) => Turn | undefined);

/** What is known of a request before it is answered. */
export interface Play {
  readonly results: number;
  readonly aside: boolean;
  /** Sends the first event of the answer, and leaves the stream open. */
  begin(): void;
}

/** After its last turn the model says that it is done. `before` may answer by itself: true when it did. */
export async function startFakeProvider(
  turns: Turns,
  before?: (seen: SeenRequest, response: ServerResponse, play: Play) => boolean | Promise<boolean>,
): Promise<FakeProvider> {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    serve(request, response).catch((error: Error) => response.destroy(error));
  });
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').split('?')[0]!;
    const raw = await text(request);
    const body = raw === '' ? {} : (JSON.parse(raw) as Record<string, unknown>);
    const seen = { path: request.url ?? '', headers: request.headers, body };
    requests.push(seen);
    const speaks = DIALECTS.find(([end]) => path.endsWith(end))?.[1];
    const model = typeof body.model === 'string' ? body.model : (/models\/([^:]+):/.exec(path)?.[1] ?? '');
    const results = speaks?.results(body) ?? 0;
    const aside = speaks?.aside(body) ?? false;
    const begin = () => {
      const turn = turnOf(turns, seen, results);
      writeEvents(response, speaks?.answer(turn, results, model).events.slice(0, 1) ?? []);
    };
    if (before && (await before(seen, response, { results, aside, begin }))) return;
    if (!speaks) {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"error":{"message":"no such path"}}');
      return;
    }
    const turn = aside ? { say: 'A title' } : turnOf(turns, seen, results);
    const answer = speaks.answer(turn, results, model);
    if (body.stream === true || path.endsWith(':streamGenerateContent')) {
      writeEvents(response, answer.events);
      response.end();
    } else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.whole));
  };
  // Longer than the client keeps one: a request that meets the end of its connection would be asked again, and stand twice in the record.
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function turnOf(turns: Turns, seen: SeenRequest, results: number): Turn {
  const turn = typeof turns === 'function' ? turns(seen, results) : turns[results];
  return turn ?? { say: 'It is done.' };
}

function writeEvents(response: ServerResponse, events: Answer['events']): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [name, data] of events) {
    const line = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${name === null ? '' : `event: ${name}\n`}data: ${line}\n\n`);
  }
}
