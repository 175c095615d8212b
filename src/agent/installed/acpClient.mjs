// An ACP client beside the program, in its container: one session, one prompt. The client starts the program, answers its requests, and writes
// its account of itself at the end. Arguments: the file of the prompt, the line that starts the program. Imports: nothing but Node.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

const [promptFile, line] = process.argv.slice(2);
const { SWEBATCH_ACP_PERMISSIONS: policy = 'allow' } = process.env;
const mcpServers = JSON.parse(process.env.SWEBATCH_ACP_MCP ?? '[]');
/** The summary must fit into what an attempt keeps of an output. */
const LONGEST = 3500;
const TAIL = 1200;
/** A title may be a whole script, and others are to stand beside it. */
const TITLE = 120;
/** The client's host waits ten seconds. */
const UNANSWERED_MS = 8000;

const program = spawn('/bin/sh', ['-c', line], { stdio: ['pipe', 'pipe', 'inherit'] });
const seen = { stop_reason: null, tool_calls: new Map(), plan: [], permissions: 0, said: '', error: null };
const waiting = new Map();
let next = 0;
let session = null;

const send = (message) => program.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const ask = (method, params) =>
  new Promise((resolve, reject) => {
    const id = next++;
    waiting.set(id, { resolve, reject });
    send({ id, method, params });
  });

function permission({ options = [] }) {
  seen.permissions += 1;
  const wanted = policy === 'allow' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  const option = wanted.flatMap((kind) => options.filter((one) => one.kind === kind))[0];
  return option
    ? { outcome: { outcome: 'selected', optionId: option.optionId } }
    : { outcome: { outcome: 'cancelled' } };
}

function update({ sessionUpdate: kind, ...said } = {}) {
  if (kind === 'agent_message_chunk') seen.said = `${seen.said}${said.content?.text ?? ''}`.slice(-TAIL);
  else if (kind === 'plan') seen.plan = said.entries ?? [];
  else if (kind === 'tool_call' || kind === 'tool_call_update') {
    const before = seen.tool_calls.get(said.toolCallId) ?? {};
    const { title = before.title, kind: sort = before.kind, status = before.status } = said;
    const short = typeof title === 'string' && title.length > TITLE ? `${title.slice(0, TITLE)}…` : title;
    seen.tool_calls.set(said.toolCallId, { title: short, kind: sort, status });
  }
}

function receive(message) {
  if (message.method === undefined) {
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.error)
      reject?.(new Error(`${message.error.message} ${JSON.stringify(message.error.data ?? '')}`));
    else resolve?.(message.result);
    return;
  }
  if (message.method === 'session/update') update(message.params?.update);
  else if (message.method === 'session/request_permission')
    send({ id: message.id, result: permission(message.params ?? {}) });
  // The program reads and writes files itself: they are in its own container.
  else if (message.id !== undefined)
    send({ id: message.id, error: { code: -32601, message: 'not offered' } });
}

let rest = '';
program.stdout.setEncoding('utf8').on('data', (text) => {
  const lines = `${rest}${text}`.split('\n');
  rest = lines.pop();
  for (const one of lines) {
    let message;
    try {
      message = JSON.parse(one);
    } catch {
      continue;
    }
    if (message && typeof message === 'object') receive(message);
  }
});
program.stdin.on('error', () => {});
const gone = new Promise((resolve) => program.on('exit', (code, signal) => resolve(code ?? signal)));

function summary() {
  const calls = [...seen.tool_calls.values()];
  const short = (count) => ({
    ...{ stop_reason: seen.stop_reason, error: seen.error, permissions: seen.permissions },
    ...{
      calls: calls.length,
      tool_calls: count === 0 ? [] : calls.slice(-count),
      plan: seen.plan.slice(0, count),
      said: seen.said,
    },
  });
  for (const count of [20, 5, 0]) {
    const text = JSON.stringify({ acp: short(count) });
    if (text.length <= LONGEST) return text;
  }
  return JSON.stringify({ acp: { ...short(0), said: '', error: seen.error?.slice(0, 500) ?? null } });
}

async function work() {
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
  const { authMethods = [] } = await ask('initialize', { protocolVersion: 1, clientCapabilities });
  const open = () => ask('session/new', { cwd: process.cwd(), mcpServers });
  const opened = await open().catch(async (error) => {
    // The program's key is in a variable: the method that takes one from there.
    const method = authMethods.find(({ id }) => /api[-_]?key|openai/i.test(id)) ?? authMethods[0];
    if (!method) throw error;
    await ask('authenticate', { methodId: method.id });
    return open();
  });
  session = opened.sessionId;
  const text = readFileSync(promptFile, 'utf8');
  const { stopReason } = await ask('session/prompt', {
    sessionId: session,
    prompt: [{ type: 'text', text }],
  });
  seen.stop_reason = stopReason;
}

const lost = gone.then((code) => {
  throw new Error(`the program ended with ${code} before it answered`);
});
/** The limit was reached. A program that does not end its turn then is told about all the same, while there is time. */
const cancelled = new Promise((_, reject) => {
  process.once('SIGTERM', () => {
    if (session === null) return reject(new Error('the limit was reached before its session began'));
    send({ method: 'session/cancel', params: { sessionId: session } });
    setTimeout(
      () => reject(new Error('it did not end its turn when that was cancelled')),
      UNANSWERED_MS,
    ).unref();
  });
});
try {
  await Promise.race([work(), lost, cancelled]);
} catch (error) {
  seen.error = String(error.message);
}
lost.catch(() => {});
cancelled.catch(() => {});
program.stdin.end();
program.kill();
process.stdout.write(`\n${summary()}\n`, () => process.exit(seen.error === null ? 0 : 1));
