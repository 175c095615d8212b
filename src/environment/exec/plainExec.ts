/**
 * The slow path: one Engine API exec per command, for images without bash and for `supervisor: false`. The API cannot kill an exec,
 * so a second one sweeps /proc for the command's mark.
 */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { createDemux } from '../docker/demux.ts';
import { readFault } from '../engines/dockerFault.ts';
import { shellScript } from '../shellScript.ts';
import { createCollector } from './outputCollector.ts';
import { createPace } from './pace.ts';
import { type CommandEnd, createMarkScanner, MAX_ARGV_BYTES, type Transport } from './transport.ts';

const nonce = () => randomBytes(12).toString('hex');

const RUN_COMMAND = shellScript('runCommand.sh', import.meta.url);
/** The same two jobs in images with bash and without. */
const SWEEP_MARK = shellScript('sweepMark.sh', import.meta.url);
const LIST_BASE = shellScript('listBase.sh', import.meta.url);
const SWEEP_MARK_POSIX = shellScript('sweepMarkPosix.sh', import.meta.url);
const LIST_BASE_POSIX = shellScript('listBasePosix.sh', import.meta.url);

/** A sweep that ran says how many it killed; anything else is the runtime's own text. */
const swept = (answer: string | undefined) => /^(\d+|done)$/.test(answer ?? '');

const DETACHED_TIMEOUT_MS = 5000;
const LAST_WORDS = 4096;
/** runc refuses an exec while processes of the last command are still being reaped. */
const UNSTARTED_WAITS_MS = [100, 500];

export async function createPlainExecTransport(
  container: Docker.Container,
  interpreter: readonly string[],
  place: { putFile(path: string, content: string): Promise<void> },
): Promise<Transport> {
  let words = '';

  const open = async (cmd: readonly string[], env: readonly string[]): Promise<Duplex> => {
    const exec = await container.exec({
      Cmd: [...cmd],
      Env: [...env],
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
      // Not the image's: the agent may have removed that folder.
      WorkingDir: '/',
    });
    return exec.start({ hijack: true, stdin: false });
  };

  /** A short script of ours; resolves to its stdout, or undefined when it did not end in time. */
  const probe = async (cmd: readonly string[]): Promise<string | undefined> => {
    const stream = await open(cmd, []);
    let out = '';
    stream.on(
      'data',
      createDemux((type, data) => {
        if (type === 1) out += data.toString('latin1');
        else words = data.toString('latin1').slice(-LAST_WORDS);
      }),
    );
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        stream.destroy();
        resolve(undefined);
      }, DETACHED_TIMEOUT_MS);
      const done = () => {
        clearTimeout(timer);
        resolve(out);
      };
      stream.on('end', done).on('close', done).on('error', done);
    });
  };

  const hasBash = (await probe(['bash', '-p', '-c', 'printf yes'])) === 'yes';
  const findKeep = async () =>
    (await probe(hasBash ? ['bash', '-p', '-c', LIST_BASE] : ['sh', '-c', LIST_BASE_POSIX])) || '1';
  let keep = await findKeep();
  const sweep = (mark: string, wrapper: string) => {
    // The wrapper is spared: it reports the end, as it does after any other death of the command.
    const spared = wrapper ? `${keep},${wrapper}` : keep;
    return probe(
      hasBash
        ? ['bash', '-p', '-c', SWEEP_MARK, 'swebatch-sweep', mark, spared, wrapper]
        : ['sh', '-c', SWEEP_MARK_POSIX, 'swebatch-sweep', mark, spared],
    );
  };

  return {
    name: 'exec',
    async run(request) {
      keep ||= await findKeep();
      const mark = nonce();
      const endNonce = nonce();
      let { command } = request;
      if (Buffer.byteLength(command) > MAX_ARGV_BYTES) {
        const path = `/tmp/.swebatch.${mark}`;
        await place.putFile(path, command);
        command = `. ${path}; set -- $?; rm -f ${path}; exit $1`;
      }
      const line = request.harness
        ? [...(hasBash ? ['bash', '-p'] : ['sh']), '-c', command]
        : [...interpreter, command];
      const env = [
        ...Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
        `SWEBATCH_CMD=${mark}`,
      ];
      let pid = '';
      let collector = createCollector(request.maxOutputBytes);
      /** One exec. Without the wrapper's pid nothing of ours ran, and what came back is the runtime's own text. */
      const attempt = async (): Promise<CommandEnd> => {
        collector = createCollector(request.maxOutputBytes);
        let stream: Duplex;
        try {
          stream = await open(
            ['sh', '-c', RUN_COMMAND, 'swebatch-exec', endNonce, request.cwd, ...line],
            env,
          );
        } catch (error) {
          words = readFault(error).text;
          return { kind: 'unstarted' };
        }
        const pace = createPace(stream);
        const { promise, resolve } = Promise.withResolvers<CommandEnd>();
        const scan = createMarkScanner(endNonce, collector, (end) => {
          resolve(end);
          stream.destroy();
        });
        const onData = createDemux((type, data) => {
          if (type === 1) {
            scan(data);
            pace(data.length, collector.totalBytes);
          } else {
            words = data.toString('latin1').slice(-LAST_WORDS);
            pid ||= /\x1epid (\d+)\x1e/.exec(words)?.[1] ?? '';
          }
        });
        const lost = () => resolve(pid ? { kind: 'lost' } : { kind: 'unstarted' });
        stream.on('data', onData).on('end', lost).on('close', lost).on('error', lost);
        return promise;
      };
      const untilStarted = async (): Promise<CommandEnd> => {
        let end = await attempt();
        for (const wait of UNSTARTED_WAITS_MS) {
          if (end.kind !== 'unstarted') return end;
          words = collector.finish().output.slice(-LAST_WORDS) || words;
          await new Promise((resolve) => setTimeout(resolve, wait));
          end = await attempt();
        }
        return end;
      };
      let sweeping: Promise<unknown> | undefined;
      return {
        ended: untilStarted().then(async (end) => {
          await sweeping;
          return end;
        }),
        kill: () => {
          sweeping ??= sweep(mark, pid).catch(() => undefined);
        },
        output: () => collector.finish(),
        transport: 'exec',
      };
    },
    killAll: async () => swept(await sweep('*', '')),
    reset: () => {
      keep = '';
    },
    lastWords: () => words,
    close: () => undefined,
  };
}
