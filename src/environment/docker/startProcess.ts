/** Processes in a container by the Engine API's exec, with their streams attached. */
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { sleep } from '../../base/async/timer.ts';
import type { StartProcess } from '../exec/ports.ts';
import { daemonAnswer, withDaemonRetry } from '../places/dockerFault.ts';
import { createDemux } from './demux.ts';

/** For a caller who watches the engine, and waits for one that is away by a signal. */
const SHORT_MS: readonly number[] = [100, 400];

/**
 * `answerMs`: how long the engine may take to make a process, and to start it. `onCut`: the stream of a process that reads its input has
 * ended, and nobody here ended it.
 */
export const processStarter =
  (container: Docker.Container, answerMs?: number, onCut?: () => void): StartProcess =>
  async (argv, { env, stdin = false } = {}) => {
    const create = () =>
      container.exec({
        Cmd: [...argv],
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
        // What has been told already is not told again.
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

/** A stream that comes when nobody waits for it any more is closed again: its process would hold it for ever. */
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

/** The daemon is at most 2 s late where a background process holds the streams. */
const EXIT_WAITS_MS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 3000, 3000, 0];

async function exitCodeOf(exec: Docker.Exec): Promise<number | undefined> {
  for (const wait of EXIT_WAITS_MS) {
    const { Running, ExitCode } = await daemonAnswer(exec.inspect());
    if (!Running && ExitCode !== null) return ExitCode;
    if (wait > 0) await sleep(wait);
  }
  return undefined;
}
