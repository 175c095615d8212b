/** Files in and out of a pod, by processes in it whose streams carry them: the API has no archives. */
import { addAbortListener } from 'node:events';
import { posix } from 'node:path';
import { PassThrough } from 'node:stream';
import tar from 'tar-stream';
import { startTimer } from '../../base/async/timer.ts';
import { archiveOf, type Container, LONGEST_FILE, tooLong } from '../container/container.ts';
import { EnvironmentError } from '../environment.ts';
import type { ContainerProcess, StartProcess } from '../exec/transport.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { shellScript } from '../shellScript.ts';
import type { StartPodProcess } from './podProcess.ts';

const PUT_FILE = shellScript('inside/putFile.sh', import.meta.url);
const PUT_ARCHIVE = shellScript('inside/putArchive.sh', import.meta.url);
const PUT_PROGRAM = shellScript('inside/putProgram.sh', import.meta.url);
const GET_FILE = shellScript('inside/getFile.sh', import.meta.url);
const GET_ARCHIVE = shellScript('inside/getArchive.sh', import.meta.url);
const LOOK_AROUND = shellScript('inside/lookAround.sh', import.meta.url);
const NOT_THERE = 90;
const NO_FILE = 91;

/** Long for the largest file that goes in; for a stream that stands still. */
const LIMIT_MS = 600_000;
const WORDS = 2000;

interface Done {
  readonly code: number | undefined;
  readonly words: string;
  /** Nothing had ended it within the limit. */
  readonly late: boolean;
}

/** Runs a script of ours; what it prints goes to `onOutput` as it comes. */
async function runScript<Process extends ContainerProcess>(
  startProcess: (...asked: Parameters<StartProcess>) => Promise<Process>,
  script: string,
  args: readonly string[],
  more: {
    readonly input?: Buffer;
    /** Writes the input in its own time; `over`: nobody reads it any more. */
    readonly feed?: (process: Process, over: () => boolean) => Promise<void>;
    readonly onOutput?: (data: Buffer, process: { pause(): void; resume(): void }) => void;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Done> {
  const { input, feed, onOutput, signal } = more;
  // The stream of an input stays open: the script reads as many bytes as it was told.
  const process = await startProcess(['sh', '-c', script, 'swebatch-files', ...args], {
    stdin: input !== undefined || feed !== undefined,
  });
  const gone = Promise.withResolvers<void>();
  let words = '';
  let over = false;
  let late = false;
  const timer = startTimer(LIMIT_MS, () => {
    late = true;
    gone.resolve();
  });
  const listening = signal && addAbortListener(signal, () => gone.resolve());
  process.listen({
    stdout: (data) => onOutput?.(data, process),
    stderr(data) {
      words = (words + data.toString('latin1')).slice(-WORDS);
    },
    gone: () => gone.resolve(),
  });
  try {
    if (input !== undefined && input.length > 0) process.write(input);
    feed?.(process, () => over).catch(gone.reject);
    await gone.promise;
    signal?.throwIfAborted();
    return { code: await process.exitCode(), words, late };
  } finally {
    over = true;
    timer.cancel();
    listening?.[Symbol.dispose]();
    process.destroy();
  }
}

/** The output of a script of ours. */
async function printed(startProcess: StartProcess, script: string, args: readonly string[]) {
  const parts: Buffer[] = [];
  const onOutput = (data: Buffer) => void parts.push(data);
  const done = await runScript(startProcess, script, args, { onOutput });
  return { done, output: Buffer.concat(parts) };
}

/** The stream broke: nobody knows how the script ended. */
class BrokenStream extends Error {}

function failure(what: string, { code, words, late }: Done): Error {
  const said = words.trim().slice(-300);
  if (late) return new Error(`${what} (not done within ${LIMIT_MS / 1000} s): ${said}`);
  return code === undefined
    ? new BrokenStream(`${what} (the stream broke): ${said}`)
    : new Error(`${what} (rc ${code}): ${said}`);
}

const TRIES = 4;

/** A file whose stream broke is written anew, or read again, once the API server answers (observed: tests/environment/kubernetes/apiAway.test.ts). */
async function unbroken<T>(work: () => Promise<T>, watch: Pick<EngineWatch, 'back'>): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BrokenStream)) throw error;
      await watch.back();
      if (tried === TRIES)
        throw new EnvironmentError('died', `${error.message}; ${TRIES} times`, {
          sub: 'daemon_lost',
          cause: error,
        });
    }
  }
}

/** tar ends with 1 where a file changed while it was read. */
const packedWell = (code: number | undefined) => code === 0 || code === 1;

export function podFiles(
  startProcess: StartProcess,
  watch: Pick<EngineWatch, 'back'>,
): Pick<Container, 'put' | 'getFile' | 'read'> {
  const { put, getFile, read } = filesByStream(startProcess);
  return {
    put: (files) => unbroken(() => put(files), watch),
    getFile: (path) => unbroken(() => getFile(path), watch),
    read: (path, reader, signal) => unbroken(() => read(path, reader, signal), watch),
  };
}

function filesByStream(startProcess: StartProcess): Pick<Container, 'put' | 'getFile' | 'read'> {
  return {
    // One file needs no tar in the image.
    async put(files) {
      const [only] = files;
      const single = files.length === 1 && only?.kind === undefined && only;
      const input = single ? Buffer.from(single.content) : await archiveOf(files);
      const size = String(input.length);
      const done = single
        ? await runScript(
            startProcess,
            PUT_FILE,
            [posix.normalize(single.path), size, single.mode.toString(8)],
            { input },
          )
        : await runScript(startProcess, PUT_ARCHIVE, [size], { input });
      const what = single ? `the file ${single.path}` : `${files.length} files`;
      if (done.code !== 0) throw failure(`${what} could not be written`, done);
    },
    async getFile(path) {
      const { done, output } = await printed(startProcess, GET_FILE, [path, String(LONGEST_FILE + 1)]);
      if (done.code === NOT_THERE) return undefined;
      if (done.code === NO_FILE) throw new Error(`${path} is not a file`);
      if (output.length > LONGEST_FILE) throw tooLong(path, LONGEST_FILE);
      if (done.code !== 0) throw failure(`the file ${path} could not be read`, done);
      return output;
    },
    async read(path, read, signal) {
      const entries = tar.extract();
      const stream = new PassThrough();
      stream.pipe(entries);
      // A reader that has enough ends the script: of a sparse file tar would send every zero.
      const enough = new AbortController();
      entries.on('close', () => enough.abort(new Error(`enough was read of ${path}`)));
      const ended = runScript(startProcess, GET_ARCHIVE, [path], {
        signal: signal ? AbortSignal.any([signal, enough.signal]) : enough.signal,
        onOutput(data, process) {
          if (stream.write(data)) return;
          process.pause();
          stream.once('drain', () => process.resume());
        },
      });
      void ended.then(
        (end) => {
          if (packedWell(end.code) || end.code === NOT_THERE) stream.end();
          else entries.destroy(failure(`${path} could not be read`, end));
        },
        (error: Error) => entries.destroy(error),
      );
      const found = await read(entries);
      return (await ended).code === NOT_THERE ? undefined : found;
    },
  };
}

/** Unpacks a gzipped archive into a folder, without holding all of it here. */
export async function putProgram(
  startProcess: StartPodProcess,
  folder: string,
  { bytes, read }: { readonly bytes: number; read(): AsyncIterable<Buffer> },
  signal?: AbortSignal,
): Promise<void> {
  const done = await runScript(startProcess, PUT_PROGRAM, [String(bytes), folder], {
    ...(signal && { signal }),
    async feed(process, over) {
      for await (const part of read()) {
        if (over()) return;
        await process.written(part);
      }
    },
  });
  if (done.code !== 0) throw failure(`${folder} could not be filled`, done);
}

/** The processor as `uname -m` calls it, and those of the paths that are there. */
export async function lookAround(
  startProcess: StartProcess,
  paths: readonly string[],
): Promise<{ machine: string; there: ReadonlySet<string> }> {
  const { done, output } = await printed(startProcess, LOOK_AROUND, paths);
  if (done.code !== 0) throw failure('the image could not be looked into', done);
  const [machine = '', ...there] = output.toString().trim().split('\n');
  return { machine, there: new Set(there) };
}
