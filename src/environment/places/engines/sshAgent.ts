/**
 * Reaches an engine over ssh as the docker CLI does: `ssh HOST docker system dial-stdio`, one process for each connection. The user's own
 * ssh decides about keys, agents, host aliases and known hosts; a library would have to do all that again, and check less.
 */
import { spawn } from 'node:child_process';
import { Agent } from 'node:http';
import { Duplex } from 'node:stream';

export interface SshAddress {
  readonly host: string;
  /** Undefined: what ssh's own configuration says. */
  readonly port: number | undefined;
  readonly username: string | undefined;
  /** Socket of the engine over there, where it is not the usual one. */
  readonly socket: string | undefined;
}

const CONNECT_TIMEOUT_S = 30;
const KEPT_STDERR = 2000;

export function sshArguments({ host, port, username, socket }: SshAddress): string[] {
  return [
    ...['-o', `ConnectTimeout=${CONNECT_TIMEOUT_S}`],
    // Nobody is there to answer a question, and a machine that is gone must be noticed.
    ...['-o', 'BatchMode=yes', '-o', 'ServerAliveInterval=15', '-o', 'ServerAliveCountMax=4', '-T'],
    ...(username === undefined ? [] : ['-l', username]),
    ...(port === undefined ? [] : ['-p', String(port)]),
    ...['--', host, 'docker', ...(socket === undefined ? [] : ['--host', `unix://${socket}`])],
    ...['system', 'dial-stdio'],
  ];
}

/** The stdio of the child as the socket that an HTTP client expects. */
function dial(address: SshAddress): Duplex {
  const child = spawn('ssh', sshArguments(address), { stdio: ['pipe', 'pipe', 'pipe'] });
  const { stdin, stdout, stderr } = child;
  let said = '';
  const socket = new Duplex({
    read: () => void stdout.resume(),
    write: (chunk: Buffer, _, done) => void stdin.write(chunk, () => done()), // `close` reports a broken pipe, with ssh's words
    final: (done) => void stdin.end(() => done()),
    destroy: (error, done) => {
      child.kill();
      done(error);
    },
  });
  const fail = (why: string) => {
    const message = `ssh to ${address.host}: ${said.trim() || why}`;
    socket.destroy(Object.assign(new Error(message), { code: 'ECONNRESET' }));
  };
  stdin.on('error', () => {});
  stdout.on('data', (chunk: Buffer) => {
    if (!socket.push(chunk)) stdout.pause();
  });
  stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-KEPT_STDERR);
  });
  child.on('error', (error) => fail(error.message));
  child.on('close', (code) => {
    if (code !== 0) return fail(code === null ? 'the connection was ended' : `ended with ${code}`);
    socket.once('end', () => socket.destroy()).push(null);
    // Nobody reads an idle connection: without this it would look alive, and the next request would wait in it for ever.
    if (socket.readableLength === 0) socket.resume();
  });
  // Idle connections must not keep the program from ending.
  const parts = [child, stdin, stdout, stderr] as unknown as { ref?(): void; unref?(): void }[];
  const each = (work: 'ref' | 'unref') => () => {
    for (const part of parts) part[work]?.();
    return socket;
  };
  const itself = () => socket;
  // The rest is what an HTTP client sets on a socket, and ssh does by itself.
  const methods = { setKeepAlive: itself, setNoDelay: itself, setTimeout: itself };
  return Object.assign(socket, methods, { ref: each('ref'), unref: each('unref') });
}

/** Connections are kept and used again: each costs a login. */
export function sshAgent(address: SshAddress): Agent {
  const agent = new Agent({ keepAlive: true });
  return Object.assign(agent, { createConnection: () => dial(address) });
}
