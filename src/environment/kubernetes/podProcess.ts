/** Processes in a pod, as src/environment/exec asks for them. */
import { pause, within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { ContainerProcess, StartProcess } from '../exec/transport.ts';
import type { ExecAddress } from './cluster.ts';
import { MAIN } from './podManifest.ts';
import type { PodShared } from './podShared.ts';

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
/** One message may not be larger than what servers take. */
const MESSAGE_BYTES = 256 * 1024;
const EXIT_MS = 4000;

type Listener = Parameters<ContainerProcess['listen']>[0];

/** How a process ended by the kubelet's word: its code, or why none could be started. */
interface ExecEnd {
  readonly code?: number;
  readonly words: string;
}

/** The last message of a stream: a Status, whose causes hold the exit code. */
export function readExecEnd(text: string): ExecEnd {
  try {
    const {
      status,
      message = '',
      details,
    } = JSON.parse(text) as {
      status?: string;
      message?: string;
      details?: { causes?: { reason?: string; message?: string }[] };
    };
    if (status === 'Success') return { code: 0, words: '' };
    const cause = details?.causes?.find(({ reason }) => reason === 'ExitCode');
    const code = Number(cause?.message);
    return cause && Number.isInteger(code) ? { code, words: '' } : { words: message };
  } catch {
    return { words: text.slice(0, 300) };
  }
}

export interface PodProcess extends ContainerProcess {
  /** Resolves once this machine has sent it: what is long is written in parts, each after the one before. */
  written(data: Buffer): Promise<void>;
}

export type StartPodProcess = (...asked: Parameters<StartProcess>) => Promise<PodProcess>;

/**
 * `onLost`: a stream that reads its input broke, and neither its process had ended nor anybody here had ended it. The agent's processes may
 * live on in the pod, and nobody can say what became of the command: such a pod is not used again.
 */
export const podProcesses =
  (
    api: Pick<PodShared, 'cluster' | 'watch'>,
    pod: string,
    onLost?: (why: string) => void,
    container: string = MAIN,
  ): StartPodProcess =>
  async (argv, { env, stdin = false } = {}) => {
    const state = createState();
    // The API knows no variables of an exec.
    const line = env && env.length > 0 ? ['env', ...env, ...argv] : argv;
    const address = { pod, container, argv: line, stdin };
    const socket = await openedStream(api, address, state.receive);
    let open = true;
    socket.onClose(() => {
      if (open && stdin && !state.ended()) onLost?.(`the stream into pod ${pod} broke`);
      open = false;
      state.close();
    });
    const write = (data: Buffer | string, left?: () => void) => {
      const bytes = typeof data === 'string' ? Buffer.from(data) : data;
      for (let at = 0; at < bytes.length; at += MESSAGE_BYTES) {
        const last = at + MESSAGE_BYTES >= bytes.length;
        const message = Buffer.concat([Buffer.of(STDIN), bytes.subarray(at, at + MESSAGE_BYTES)]);
        socket.send(message, last ? left : undefined);
      }
    };
    return {
      listen: state.listen,
      write,
      written: (data) => new Promise((resolve) => write(data, resolve)),
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      destroy() {
        open = false;
        socket.terminate();
      },
      exitCode: async () => (await within(state.end, EXIT_MS))?.code,
      // The exit code is the last message on the same stream.
      wordComesLast: true,
    };
  };

const OPENINGS = 6;
const AGAIN_MS = 250;
/** The server answered, and an answer of this kind stays as it is. */
const REFUSED = /Unexpected server response: 4\d\d/;

/**
 * A stream that could not be opened has started nothing: while the API server is away it is waited for. A server that is just back refuses
 * everybody until it has read who has which rights, and does not know its nodes at once (observed: tests/environment/kubernetes/apiAway.test.ts).
 */
async function openedStream(
  { cluster, watch }: Pick<PodShared, 'cluster' | 'watch'>,
  address: ExecAddress,
  receive: (stream: number, data: Buffer) => void,
) {
  const since = watch.mark();
  for (let tried = 1; ; tried += 1) {
    try {
      return await cluster.exec(address, receive);
    } catch (error) {
      const text = errorText(error);
      await watch.back();
      const stays = REFUSED.test(text) && !watch.awaySince(since);
      if (stays || tried === OPENINGS)
        throw new Error(`the stream into pod ${address.pod} could not be opened: ${text}`, { cause: error });
      await pause(AGAIN_MS * 2 ** (tried - 1), undefined);
    }
  }
}

/** Messages that come before anybody listens are kept. */
function createState() {
  const end = Promise.withResolvers<ExecEnd>();
  let listener: Listener | undefined;
  let early: [number, Buffer][] = [];
  let told = false;
  let closed = false;
  const give = (to: Listener, stream: number, data: Buffer) => {
    if (stream === STDOUT) to.stdout(data);
    if (stream === STDERR) to.stderr(data);
  };
  const pass = (stream: number, data: Buffer) => {
    if (data.length === 0) return;
    if (listener) give(listener, stream, data);
    else early.push([stream, data]);
  };
  return {
    end: end.promise,
    ended: () => told,
    receive(stream: number, data: Buffer) {
      if (stream !== STATUS) return pass(stream, data);
      told = true;
      const known = readExecEnd(data.toString());
      // Why nothing could be started is told where an engine's own words are expected.
      if (known.code === undefined) pass(STDERR, Buffer.from(known.words));
      end.resolve(known);
    },
    close() {
      closed = true;
      end.resolve({ words: 'the stream ended' });
      listener?.gone();
    },
    listen(next: Listener) {
      listener = next;
      const before = early;
      early = [];
      for (const [stream, data] of before) give(next, stream, data);
      if (closed) queueMicrotask(next.gone);
    },
  };
}
