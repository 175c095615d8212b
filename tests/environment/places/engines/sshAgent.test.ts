// An engine over ssh: the user's own program is run, and its stdio is the connection.
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { type Agent, createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connectEngine } from '../../../../src/environment/places/endpoint.ts';
import { tempDir } from '../../../support/cli.ts';

let dir: string;
let engine: Server;
const asked: string[] = [];

beforeEach(async () => {
  dir = tempDir('swebatch-ssh-');
  asked.length = 0;
  engine = createServer((request, response) => {
    asked.push(request.url!);
    response.end('{"ID":"far"}');
  });
  engine.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    socket.pipe(socket);
  });
  await new Promise<void>((done) => engine.listen(join(dir, 'engine.sock'), done));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  engine.closeAllConnections();
  await new Promise((done) => engine.close(done));
  rmSync(dir, { recursive: true });
});

/** A program called ssh that notes its arguments; `body` is what it does then. */
function fakeSsh(body: string): void {
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  const script = `#!${process.execPath}
const fs = require('node:fs');
fs.appendFileSync(${JSON.stringify(join(dir, 'calls'))}, process.argv.slice(2).join(' ') + '\\n');
${body}`;
  writeFileSync(join(bin, 'ssh'), script);
  chmodSync(join(bin, 'ssh'), 0o755);
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
}
const bridge = () => `
const socket = require('node:net').connect(${JSON.stringify(join(dir, 'engine.sock'))});
process.stdin.pipe(socket).pipe(process.stdout);
socket.on('close', () => process.exit(0));`;

function far() {
  const made = connectEngine({ DOCKER_CONFIG: dir, DOCKER_HOST: 'ssh://me@lab' });
  if (!made.ok) throw new Error(made.message);
  return made.docker;
}

test('requests and hijacked streams go through one program each connection, and connections are used again', async () => {
  fakeSsh(bridge());
  const docker = far();
  expect(await docker.info()).toMatchObject({ ID: 'far' });
  expect(await docker.info()).toMatchObject({ ID: 'far' });
  expect(asked).toEqual(['/info', '/info']);
  const stream = await docker.getExec('x').start({ hijack: true, stdin: true });
  const echoed = new Promise<string>((done) => stream.once('data', (chunk) => done(String(chunk))));
  stream.write('hello over ssh');
  expect(await echoed).toBe('hello over ssh');
  stream.destroy();
});

test('a connection that the engine closed is not used again', async () => {
  fakeSsh(bridge());
  const docker = far();
  const { agent } = docker.modem as unknown as { agent: Agent };
  await docker.info();
  await vi.waitUntil(() => Object.keys(agent.freeSockets).length === 1, { timeout: 60_000 });
  engine.closeAllConnections();
  await vi.waitUntil(() => Object.keys(agent.freeSockets).length === 0, { timeout: 60_000 });
  expect(await docker.info()).toMatchObject({ ID: 'far' });
});

test('what ssh says is what people read, and counts as an engine that is gone', async () => {
  fakeSsh(`process.stderr.write('Permission denied (publickey).\\n', () => process.exit(255));`);
  await expect(far().info()).rejects.toMatchObject({
    code: 'ECONNRESET',
    message: 'ssh to lab: Permission denied (publickey).',
  });
});
