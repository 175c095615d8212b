/** Files in and out of a pod, by processes in it whose streams carry them: the API has no archives. */
import { posix } from 'node:path';
import { PassThrough } from 'node:stream';
import tar from 'tar-stream';
import { startTimer } from '../../base/async/timer.ts';
import { FilesTooLargeError, type PlacedFile } from '../environment.ts';
import type { ContainerProcess, StartProcess } from '../exec/ports.ts';
import type { ReadFolder } from '../patch/treeSnapshot.ts';
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
  const timer = startTimer(LIMIT_MS, () => gone.resolve());
  const onAbort = () => gone.resolve();
  signal?.addEventListener('abort', onAbort, { once: true });
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
    return { code: await process.exitCode(), words };
  } finally {
    over = true;
    timer.cancel();
    signal?.removeEventListener('abort', onAbort);
    process.destroy();
  }
}

const failure = (what: string, { code, words }: Done) =>
  new Error(
    `${what} (${code === undefined ? 'the stream broke' : `rc ${code}`}): ${words.trim().slice(-300)}`,
  );

export async function putFile(
  startProcess: StartProcess,
  path: string,
  content: Uint8Array | string,
  mode: number,
): Promise<void> {
  if (!posix.isAbsolute(path)) throw new Error(`putFile needs an absolute path, got ${path}`);
  const input = Buffer.from(content);
  const args = [posix.normalize(path), String(input.length), mode.toString(8)];
  const done = await runScript(startProcess, PUT_FILE, args, { input });
  if (done.code !== 0) throw failure(`the file ${path} could not be written`, done);
}

export async function putFiles(startProcess: StartProcess, files: readonly PlacedFile[]): Promise<void> {
  if (files.length === 0) return;
  const pack = tar.pack();
  for (const { path, content, mode } of files)
    pack.entry({ name: posix.normalize(path).slice(1), mode }, Buffer.from(content));
  pack.finalize();
  const parts: Buffer[] = [];
  for await (const part of pack as AsyncIterable<Buffer>) parts.push(part);
  const input = Buffer.concat(parts);
  const done = await runScript(startProcess, PUT_ARCHIVE, [String(input.length)], { input });
  if (done.code !== 0) throw failure(`${files.length} files could not be written`, done);
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

export async function getFile(startProcess: StartProcess, path: string): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  const onOutput = (data: Buffer) => void parts.push(data);
  const done = await runScript(startProcess, GET_FILE, [path], { onOutput });
  if (done.code === NOT_THERE)
    throw Object.assign(new Error(`no file ${path} in the pod`), { code: 'ENOENT' });
  if (done.code === NO_FILE) throw new Error(`${path} is not a file`);
  if (done.code !== 0) throw failure(`the file ${path} could not be read`, done);
  return Buffer.concat(parts);
}

/** The processor as `uname -m` calls it, and those of the paths that are there. */
export async function lookAround(
  startProcess: StartProcess,
  paths: readonly string[],
): Promise<{ machine: string; there: ReadonlySet<string> }> {
  const parts: Buffer[] = [];
  const onOutput = (data: Buffer) => void parts.push(data);
  const done = await runScript(startProcess, LOOK_AROUND, paths, { onOutput });
  if (done.code !== 0) throw failure('the image could not be looked into', done);
  const [machine = '', ...there] = Buffer.concat(parts).toString().trim().split('\n');
  return { machine, there: new Set(there) };
}

/** tar ends with 1 where a file changed while it was read. */
const packedWell = (code: number | undefined) => code === 0 || code === 1;

/** A folder as an archive, whose names begin with the folder's own. */
export const folderReader =
  (startProcess: StartProcess): ReadFolder =>
  async (folder, read, signal) => {
    const archive = openArchive(startProcess, folder, signal);
    return read(archive.entries);
  };

function openArchive(startProcess: StartProcess, path: string, signal?: AbortSignal) {
  const entries = tar.extract();
  const stream = new PassThrough();
  stream.pipe(entries);
  const done = runScript(startProcess, GET_ARCHIVE, [path], {
    ...(signal && { signal }),
    onOutput(data, process) {
      if (stream.write(data)) return;
      process.pause();
      stream.once('drain', () => process.resume());
    },
  });
  void done.then(
    (end) => {
      if (packedWell(end.code) || end.code === NOT_THERE) stream.end();
      else entries.destroy(failure(`${path} could not be read`, end));
    },
    (error: Error) => entries.destroy(error),
  );
  return { entries, done };
}

export async function getFiles(
  startProcess: StartProcess,
  path: string,
  maxBytes: number,
): Promise<PlacedFile[]> {
  const { entries, done } = openArchive(startProcess, path);
  const above = posix.dirname(posix.normalize(path));
  const files: PlacedFile[] = [];
  let left = maxBytes;
  // Read to the end also when it is too much: leaving the loop early would destroy the stream under the pipe.
  for await (const entry of entries) {
    const { name, type, size = 0, mode = 0o644 } = entry.header;
    left -= size;
    if (type !== 'file' || left < 0) {
      entry.resume();
      continue;
    }
    const parts: Buffer[] = [];
    for await (const part of entry as AsyncIterable<Buffer>) parts.push(part);
    files.push({ path: posix.join(above, posix.normalize(`/${name}`)), content: Buffer.concat(parts), mode });
  }
  await done;
  if (left < 0) throw new FilesTooLargeError(`${path} holds more than ${Math.floor(maxBytes / 2 ** 20)} MB`);
  return files;
}
