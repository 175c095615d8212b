/** Processes in a container by the Engine API's exec, with their streams attached. */
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { sleep } from '../../base/async/timer.ts';
import type { StartProcess } from '../exec/transport.ts';
import { daemonAnswer, withDaemonRetry } from '../places/dockerFault.ts';

/** Waits of a caller that watches the engine, and waits for one that is away by a signal. */
const SHORT_MS: readonly number[] = [100, 400];

/**
 * `answerMs`: how long the engine may take to make a process, and to start it. `onCut`: the stream of a process that reads its input has
 * ended, and nobody here ended it. `user`: another than that of the container.
 */
export const processStarter =
  (container: Docker.Container, answerMs?: number, onCut?: () => void, user?: string): StartProcess =>
  async (argv, { env, stdin = false } = {}) => {
    const create = () =>
      container.exec({
        Cmd: [...argv],
        ...(user !== undefined && { User: user }),
        ...(env && { Env: [...env] }),
        ...(stdin && { AttachStdin: true }),
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        // Not the image's: the agent may have removed that folder.
        WorkingDir: '/',
      });
    // Nothing runs before its start: that alone is never asked for twice.
    const exec = await withDaemonRetry(() => daemonAnswer(create(), answerMs), onCut && SHORT_MS);
    const stream = await attachedStream(exec.start({ hijack: true, stdin }), answerMs);
    let open = stdin;
    const cut = () => {
      if (open) onCut?.();
      open = false;
    };
    for (const event of ['end', 'close', 'error']) stream.once(event, cut);
    return {
      listen({ stdout, stderr, gone }) {
        stream.on('end', gone).on('close', gone).on('error', gone);
        // A stream that has ended tells its end no second time.
        if (stream.closed || stream.readableEnded) queueMicrotask(gone);
        stream.on(
          'data',
          createDemux((type, data) => (type === 1 ? stdout(data) : stderr(data))),
        );
      },
      write: (data) => void stream.write(data),
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      destroy() {
        open = false;
        stream.destroy();
      },
      exitCode: () => exitCodeOf(exec),
    };
  };

/**
 * A stream that comes when nobody waits for it any more is closed again: its process would hold it for ever
 * (observed: tests/environment/exec/droppedExec.test.ts).
 */
async function attachedStream(starting: Promise<Duplex>, answerMs?: number): Promise<Duplex> {
  try {
    return await daemonAnswer(starting, answerMs);
  } catch (error) {
    starting.then(
      (late) => late.destroy(),
      () => undefined,
    );
    throw error;
  }
}

/**
 * The daemon is 2 s late where a background process holds the streams, and more on a machine that is drowning: a command must not be taken
 * for a forger for that (observed: tests/environment/exec/forgedEnd.test.ts).
 */
const EXIT_WAITS_MS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 3000, 3000, 5000, 5000, 10_000, 10_000, 0];

async function exitCodeOf(exec: Docker.Exec): Promise<number | undefined> {
  for (const wait of EXIT_WAITS_MS) {
    const { Running, ExitCode } = await daemonAnswer(exec.inspect());
    if (!Running && ExitCode !== null) return ExitCode;
    if (wait > 0) await sleep(wait);
  }
  return undefined;
}

/**
 * Takes Docker's multiplexed stream apart. Iterative and without buffering of payloads: docker-modem's own demuxStream recurses
 * per frame and throws RangeError on a chunk of some thousand small frames.
 */

type StreamType = 1 | 2;
const HEADER_BYTES = 8;

/** Returns a function to feed with chunks; `onData` gets payload pieces in order of arrival (1 stdout, 2 stderr). */
export function createDemux(onData: (type: StreamType, data: Buffer) => void): (chunk: Buffer) => void {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerFilled = 0;
  let type: StreamType = 1;
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left > 0) {
        const end = Math.min(at + left, chunk.length);
        left -= end - at;
        onData(type, chunk.subarray(at, end));
        at = end;
        continue;
      }
      const take = Math.min(HEADER_BYTES - headerFilled, chunk.length - at);
      chunk.copy(header, headerFilled, at, at + take);
      headerFilled += take;
      at += take;
      if (headerFilled < HEADER_BYTES) return;
      headerFilled = 0;
      type = header[0] === 2 ? 2 : 1;
      left = header.readUInt32BE(4);
    }
  };
}
