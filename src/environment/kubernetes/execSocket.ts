/**
 * One process in a pod over one WebSocket, by channels: the first byte of a message says which stream it belongs to. A handshake that is
 * never answered ends in time, and a stream that has fallen silent is cut: both are known to hang for ever.
 */
import type { KubeConfig } from '@kubernetes/client-node';
import { startTimer } from '../../base/async/timer.ts';
import { recordOf } from '../../base/isRecord.ts';

export interface ExecAddress {
  readonly pod: string;
  readonly container: string;
  readonly argv: readonly string[];
  readonly stdin: boolean;
}

/** What is used of the socket. */
export interface ExecSocket {
  /** `left`: the machine has taken it, or the socket is closed. */
  send(data: Buffer, left?: () => void): void;
  pause(): void;
  resume(): void;
  terminate(): void;
  /** Called once. */
  onClose(closed: () => void): void;
}

const HANDSHAKE_MS = 20_000;
const BEAT_MS = 10_000;
/** Three beats without an answer. */
const SILENT_MS = 35_000;

/** The package does not hand it out by its main entry. */
type Sockets = typeof import('@kubernetes/client-node/dist/web-socket-handler.js');

export function execPath(namespace: string, { pod, container, argv, stdin }: ExecAddress): string {
  const query = new URLSearchParams({
    ...{ stdout: 'true', stderr: 'true', tty: 'false', stdin: String(stdin), container },
  });
  for (const word of argv) query.append('command', word);
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec?${query}`;
}

export async function openSocket(
  sockets: Sockets,
  config: KubeConfig,
  namespace: string,
  address: ExecAddress,
  onData: (stream: number, data: Buffer) => void,
): Promise<ExecSocket> {
  // The package knows no limit of a handshake; the socket beneath it does.
  const bounded: KubeConfig = Object.create(config, {
    applyToHTTPSOptions: {
      value: async (options: Parameters<KubeConfig['applyToHTTPSOptions']>[0]) => {
        await config.applyToHTTPSOptions(options);
        Object.assign(options, { handshakeTimeout: HANDSHAKE_MS });
      },
    },
  }) as KubeConfig;
  // By default the end of a stream would close that of this process.
  const unused = { end: () => undefined, pause: () => undefined };
  const streams = { stdin: unused, stdout: unused, stderr: unused } as never;
  const handler = new sockets.WebSocketHandler(bounded, undefined, streams);
  let heard = () => {};
  const connecting = handler.connect(execPath(namespace, address), null, (stream, data) => {
    heard();
    onData(stream, data);
    return true;
  });
  const socket = await connecting.catch((event: unknown) => {
    // The package rejects with the socket's event, whose error is beside it.
    throw new Error(String(recordOf(event).message ?? event), { cause: recordOf(event).error });
  });
  let paused = false;
  const silence = startTimer(SILENT_MS, () => socket.terminate(), { idle: true });
  heard = () => silence.restart();
  socket.on('pong', heard);
  const beat = setIntervalOf(BEAT_MS, () => {
    // While nothing is read, no answer is seen either.
    if (paused) silence.restart();
    else socket.ping();
  });
  const closed = Promise.withResolvers<void>();
  for (const event of ['close', 'error'] as const)
    socket.on(event, () => {
      silence.cancel();
      beat.cancel();
      closed.resolve();
    });
  if (socket.readyState !== socket.OPEN) closed.resolve();
  return {
    send: (data, left = () => undefined) => socket.send(data, () => left()),
    pause() {
      paused = true;
      socket.pause();
    },
    resume() {
      paused = false;
      silence.restart();
      socket.resume();
    },
    terminate: () => socket.terminate(),
    onClose: (then) => void closed.promise.then(then),
  };
}

/** Each time from the one before, until it is cancelled. */
function setIntervalOf(ms: number, tick: () => void): { cancel(): void } {
  let over = false;
  let timer = startTimer(ms, next, { idle: true });
  function next(): void {
    if (over) return;
    tick();
    timer = startTimer(ms, next, { idle: true });
  }
  return {
    cancel() {
      over = true;
      timer.cancel();
    },
  };
}
