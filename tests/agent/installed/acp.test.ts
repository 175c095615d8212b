// Our client of the Agent Client Protocol, with a program that plays the other side: what it asks is answered, and what it says is told.
import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acpSummary } from '../../../src/agent/installed/acpAgent.ts';

const CLIENT = join(import.meta.dirname, '../../../src/agent/installed/acpClient.mjs');

/** A program that answers as `turns` say: what it sends before it answers a prompt, and how that ends. */
const PROGRAM = `
const lines = require('node:readline').createInterface({ input: process.stdin });
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const play = JSON.parse(process.env.PLAY);
let prompt = null, authed = !play.auth;
lines.on('line', (line) => {
  const m = JSON.parse(line);
  if (m.method === 'initialize') {
    process.stdout.write('a banner that is no JSON\\n');
    send({ id: m.id, result: { protocolVersion: 1, authMethods: [{ id: 'oauth' }, { id: 'use-api-key' }] } });
  } else if (m.method === 'authenticate') { authed = m.params.methodId === 'use-api-key'; send({ id: m.id, result: {} }); }
  else if (m.method === 'session/new') send(authed ? { id: m.id, result: { sessionId: 's' } } : { id: m.id, error: { code: -32000, message: 'auth' } });
  else if (m.method === 'session/prompt') {
    prompt = m;
    for (const one of play.sends ?? []) send(one);
    if (play.ends) process.stderr.write('prompted');
    if (play.dies) process.exit(3);
    if (!play.waits) send({ id: m.id, result: { stopReason: 'end_turn' } });
  } else if (m.method === 'session/cancel') send({ id: prompt.id, result: { stopReason: 'cancelled' } });
  else if (m.id === 'p') { send({ method: 'session/update', params: { update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'got ' + JSON.stringify(m.result ?? m.error) } } } }); send({ id: prompt.id, result: { stopReason: 'end_turn' } }); }
});
`;

function played(
  play: object,
  more: Record<string, string> = {},
): Promise<{ code: number; acp: Record<string, unknown> }> {
  const dir = mkdtempSync(join(tmpdir(), 'acp-'));
  writeFileSync(join(dir, 'program.cjs'), PROGRAM);
  writeFileSync(join(dir, 'prompt.txt'), "a task with 'quotes' and $(signs)");
  const env = { PATH: process.env.PATH, PLAY: JSON.stringify(play), ...more };
  const line = `exec '${process.execPath}' '${join(dir, 'program.cjs')}'`;
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [CLIENT, join(dir, 'prompt.txt'), line],
      { env, timeout: 30_000 },
      (_, stdout) =>
        resolve({ code: child.exitCode ?? -1, acp: acpSummary(stdout).acp as Record<string, unknown> }),
    );
    child.stderr!.on('data', (text: string) => text.includes('prompted') && child.kill('SIGTERM'));
  });
}

const update = (said: object) => ({ method: 'session/update', params: { sessionId: 's', update: said } });
const options = [
  { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
const asks = { id: 'p', method: 'session/request_permission', params: { sessionId: 's', options } };

test('calls of tools, the plan, the words and the reason to stop are told', async () => {
  const sends = [
    update({ sessionUpdate: 'plan', entries: [{ content: 'look', status: 'pending' }] }),
    update({ sessionUpdate: 'tool_call', toolCallId: 't', title: 'ls', kind: 'execute', status: 'pending' }),
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed' }),
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Done.' } }),
  ];
  expect(await played({ sends })).toEqual({
    code: 0,
    acp: {
      ...{ stop_reason: 'end_turn', error: null, permissions: 0, calls: 1, said: 'Done.' },
      tool_calls: [{ title: 'ls', kind: 'execute', status: 'completed' }],
      plan: [{ content: 'look', status: 'pending' }],
    },
  });
});

test.each([
  ['allow', 'yes'],
  ['refuse', 'no'],
])('what it asks leave for is answered by the policy: %s', async (policy, option) => {
  const { acp } = await played({ sends: [asks], waits: true }, { SWEBATCH_ACP_PERMISSIONS: policy });
  expect(acp).toMatchObject({
    permissions: 1,
    said: `got {"outcome":{"outcome":"selected","optionId":"${option}"}}`,
  });
});

test('a request that is not offered gets an error, and does not hang', async () => {
  const sends = [{ id: 'p', method: 'fs/read_text_file', params: { path: '/etc/passwd' } }];
  expect((await played({ sends, waits: true })).acp.said).toContain('not offered');
});

test('it authenticates with a key where a session wants that', async () => {
  expect((await played({ auth: true })).acp).toMatchObject({ stop_reason: 'end_turn', error: null });
});

test('SIGTERM cancels the turn, and what the program said of itself is told', async () => {
  const said = update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'so far' } });
  const { acp } = await played({ waits: true, sends: [said], ends: true });
  expect(acp).toMatchObject({ stop_reason: 'cancelled', said: 'so far', error: null });
});

test('a program that ends in the middle is told, and so is one that says very much', async () => {
  expect(await played({ dies: true })).toMatchObject({
    code: 1,
    acp: { error: 'the program ended with 3 before it answered' },
  });
  const many = Array.from({ length: 50 }, (_, n) =>
    update({
      sessionUpdate: 'tool_call',
      toolCallId: `t${n}`,
      title: '"'.repeat(900),
      kind: 'edit',
      status: 'done',
    }),
  );
  const { acp } = await played({ sends: many });
  expect(acp.calls).toBe(50);
  expect(JSON.stringify({ acp }).length).toBeLessThanOrEqual(3500);
});

test('a call whose title is a whole script leaves room for the others', async () => {
  const call = (toolCallId: string, title: string) =>
    update({ sessionUpdate: 'tool_call', toolCallId, title, kind: 'execute', status: 'completed' });
  const { acp } = await played({
    sends: [call('1', 'ls'), call('2', `git apply ${'+ a line\n'.repeat(800)}`)],
  });
  const titles = (acp.tool_calls as { title: string }[]).map(({ title }) => title);
  expect([titles[0], titles[1]?.length]).toEqual(['ls', 121]);
});
