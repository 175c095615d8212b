/**
 * A model server for the demo, without a model: chat completions on this machine that play the replies of datasets/demo/replies. The same
 * commands go to whichever agent asks, so that a comparison of agents needs no key and comes out the same every time.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { commandsOf, type DemoTurn, demoTurn, type ShellTool } from './scriptedTurns.ts';

const DEMO = join(import.meta.dirname, '..', '..', 'datasets', 'demo');

interface Request {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly { readonly role: string }[];
  readonly tools?: readonly { readonly function: ShellTool }[];
}

/** By the first line of the report, which every agent quotes. */
function loadCommands(): readonly { title: string; commands: string[] }[] {
  return readFileSync(join(DEMO, 'demo.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const row = JSON.parse(line) as { instance_id: string; problem_statement: string };
      const file = join(DEMO, 'replies', `${row.instance_id}.json`);
      const { replies } = JSON.parse(readFileSync(file, 'utf8')) as { replies: { content: string }[] };
      const title = JSON.stringify(row.problem_statement.split('\n')[0]).slice(1, -1);
      return { title, commands: commandsOf(replies) };
    });
}

/** About what tokenizers make of such text. */
const tokens = (text: string): number => Math.ceil(text.length / 4);

function answer(response: ServerResponse, request: Request, turn: DemoTurn, asked: number): void {
  const base = { id: `demo-${asked}`, created: 0, model: request.model ?? 'demo' };
  const call = 'name' in turn && {
    ...{ id: `call_${request.messages?.length ?? 0}`, type: 'function' },
    function: { name: turn.name, arguments: JSON.stringify(turn.args) },
  };
  const message = call
    ? { role: 'assistant', content: null, tool_calls: [call] }
    : { role: 'assistant', content: (turn as { say: string }).say };
  const finish_reason = call ? 'tool_calls' : 'stop';
  const completion_tokens = tokens(JSON.stringify(message));
  const usage = { prompt_tokens: asked, completion_tokens, total_tokens: asked + completion_tokens };
  if (!request.stream) {
    const choices = [{ index: 0, message, finish_reason }];
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ ...base, object: 'chat.completion', choices, usage }));
    return;
  }
  const delta = call ? { ...message, tool_calls: [{ index: 0, ...call }] } : message;
  const chunk = (more: object) =>
    `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', ...more })}\n\n`;
  response
    .writeHead(200, { 'content-type': 'text/event-stream' })
    .end(
      [
        chunk({ choices: [{ index: 0, delta, finish_reason: null }] }),
        chunk({ choices: [{ index: 0, delta: {}, finish_reason }] }),
        chunk({ choices: [], usage }),
        'data: [DONE]\n\n',
      ].join(''),
    );
}

export function demoModelServer(): Server {
  const known = loadCommands();
  return createServer(async (incoming, response) => {
    const request = (await json(incoming).catch(() => ({}))) as Request;
    const text = JSON.stringify(request.messages ?? []);
    const commands = known.find(({ title }) => text.includes(title))?.commands ?? [];
    const done = (request.messages ?? []).filter(({ role }) => role === 'tool').length;
    const tools = (request.tools ?? []).map((tool) => tool.function);
    answer(response, request, demoTurn(commands, done, tools), tokens(JSON.stringify(request)));
  });
}

const PORT = 8377;

if (import.meta.main)
  demoModelServer().listen(PORT, '127.0.0.1', () =>
    process.stderr.write(`the demo's model answers at http://127.0.0.1:${PORT}/v1; Ctrl-C ends it\n`),
  );
