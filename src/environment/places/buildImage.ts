/**
 * Builds an image from a Dockerfile by the engine: its classic builder, or BuildKit where the file needs that. The network is open in the build
 * alone. The log is kept.
 */
import { addAbortListener } from 'node:events';
import { join } from 'node:path';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { errorText } from '../../base/text/errorText.ts';
import { type BuildFile, recipeOf } from './buildRecipes.ts';

const MEMORY_BYTES = 8 * 2 ** 30;
/** Characters of the log in a message: its end says what failed. */
const SHOWN = 1500;
/** Characters of the log in its file. */
const KEPT = 4 * 2 ** 20;

/** The engine's client puts this before a refusal: "(HTTP code 400) unexpected - unknown instruction: RUNN". */
const ANSWER = /^\(HTTP code \d{3}\) [\w ]{1,40} - /;
/** Tells a failed build from a failed pull. */
const BUILD_FAILED = 'the build failed';

interface BuildLine {
  readonly stream?: string;
  readonly status?: string;
  readonly error?: string;
  readonly id?: string;
  readonly aux?: unknown;
}

const TRACE = 'moby.buildkit.trace';

interface BuildRequest {
  readonly image: string;
  readonly platform?: string | undefined;
  readonly signal: AbortSignal;
  readonly onEvent: (event: { readonly status: string }) => void;
  /** Folder of the logs; without it none is written. */
  readonly logDir?: string | undefined;
}

function contextOf(files: readonly BuildFile[]): NodeJS.ReadableStream {
  const pack = tar.pack();
  for (const { path, content, executable, isFolder } of files)
    if (isFolder) pack.entry({ name: path, mode: 0o755, type: 'directory' });
    else pack.entry({ name: path, mode: executable ? 0o755 : 0o644 }, Buffer.from(content));
  pack.finalize();
  return pack as unknown as NodeJS.ReadableStream;
}

/** As a number: for the text "2" the client library opens a session of its own beside it, which a context that is sent needs not. */
function builderOf(files: readonly BuildFile[], name: string): { version?: '2' } {
  const dockerfile = files.find(({ path }) => path === name);
  const wants = dockerfile && needsBuildKit(Buffer.from(dockerfile.content).toString('utf8'));
  return wants ? { version: 2 as unknown as '2' } : {};
}

/** Reads the engine's lines to their end. Returns the error that it names. */
async function follow(
  stream: NodeJS.ReadableStream,
  write: (text: string) => void,
): Promise<string | undefined> {
  let error: string | undefined;
  await eachObject<BuildLine>(stream, (said) => {
    error ??= said.error;
    if (said.id === TRACE && typeof said.aux === 'string') return write(traceText(said.aux));
    write(said.error ?? said.stream ?? (said.status === undefined ? '' : `${said.status}\n`));
  });
  return error;
}

/** Lines of an engine about long work, a JSON object each. */
export async function eachObject<Line>(
  stream: NodeJS.ReadableStream,
  heard: (line: Line) => void,
): Promise<void> {
  let rest = '';
  const read = (text: string) => {
    if (text.trim() !== '') heard(JSON.parse(text) as Line);
  };
  stream.setEncoding('utf8');
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) read(text);
  }
  read(rest);
}

export async function buildImage(docker: Docker, request: BuildRequest): Promise<void> {
  const { image, platform, onEvent, logDir } = request;
  const recipe = recipeOf(image);
  if (!recipe) throw new Error(`${BUILD_FAILED}: nobody says what ${image} is built from`);
  const deadline = AbortSignal.timeout(recipe.timeoutS * 1000);
  const signal = AbortSignal.any([request.signal, deadline]);
  let log = '';
  const write = (text: string) => {
    log += text;
    // Cut now and then: each time would copy all of it for every line.
    if (log.length > 2 * KEPT) log = log.slice(-KEPT);
    onEvent({ status: text.trim().slice(0, 200) });
  };
  const failed = (why: string) =>
    new Error(
      `${BUILD_FAILED}: ${why.replace(ANSWER, '').trim()}${log.trim() === '' ? '' : `. The end of its log: ${log.trim().slice(-SHOWN)}`}`,
    );
  try {
    const files = recipe.files();
    const { dockerfile = 'Dockerfile', target, args } = recipe;
    const stream = await docker.buildImage(contextOf(files), {
      t: image,
      rm: true,
      forcerm: true,
      memory: MEMORY_BYTES,
      abortSignal: signal,
      labels: { 'swebatch.build': image },
      ...(platform !== undefined && { platform }),
      dockerfile,
      ...(target !== undefined && { target }),
      ...(args !== undefined && { buildargs: { ...args } }),
      ...builderOf(files, dockerfile),
    });
    addAbortListener(signal, () => (stream as unknown as { destroy(): void }).destroy());
    const error = await follow(stream, write);
    if (error !== undefined) throw failed(error);
  } catch (error) {
    request.signal.throwIfAborted();
    if (deadline.aborted) throw failed(`it did not end within ${recipe.timeoutS} s`);
    throw errorText(error).startsWith(BUILD_FAILED) ? error : failed(errorText(error));
  } finally {
    if (logDir !== undefined) await keepLog(logDir, image, log.slice(-KEPT));
  }
}

/** A log that cannot be written is no reason to call the build failed. */
async function keepLog(dir: string, image: string, log: string): Promise<void> {
  try {
    makeFolder(dir);
    await writeAtomically(join(dir, `${image.replaceAll(/[^\w.-]/g, '_')}.log`), log);
  } catch {
    // The message of a failed build has the end of it.
  }
}

/**
 * BuildKit's words about a build: messages of moby.buildkit.v1.StatusResponse in base64, of which the names of steps, their errors and the output of
 * their commands are read. The decoder of the client library gives the output as base64.
 */

type Field = { readonly id: number; readonly bytes?: Buffer };

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Fields of one message; what is cut off ends it (observed: tests/environment/places/images/buildTrace.test.ts). */
function* fieldsOf(message: Buffer): Generator<Field> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; at < message.length; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < message.length) {
    const tag = varint();
    const [id, kind] = [Math.floor(tag / 8), tag % 8];
    if (kind === BYTES) {
      const length = varint();
      yield { id, bytes: message.subarray(at, at + length) };
      at += length;
    } else if (kind === VARINT) varint();
    else if (kind === FIXED64) at += 8;
    else if (kind === FIXED32) at += 4;
    else return;
  }
}

function textsOf(message: Buffer, ids: Readonly<Record<string, number>>): Record<string, string | undefined> {
  const found = new Map<number, string>();
  for (const { id, bytes } of fieldsOf(message)) if (bytes) found.set(id, bytes.toString('utf8'));
  return Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, found.get(id)]));
}

const STEP = { name: 3, started: 5, completed: 6, error: 7 };
const OUTPUT = { message: 4 };

/** Steps as they begin and fail, and what their commands print. */
export function traceText(base64: string): string {
  const lines: string[] = [];
  for (const { id, bytes } of fieldsOf(Buffer.from(base64, 'base64'))) {
    if (!bytes) continue;
    if (id === 1) {
      const { name, started, completed, error } = textsOf(bytes, STEP);
      if (error) lines.push(`${error}\n`);
      else if (name && started !== undefined && completed === undefined) lines.push(`${name}\n`);
    } else if (id === 3) lines.push(textsOf(bytes, OUTPUT).message ?? '');
  }
  return lines.join('');
}

/** Whether a Dockerfile asks for what only BuildKit does. The classic builder keeps a build within a limit of memory, so it has all others. */

const INSTRUCTIONS: ReadonlySet<string> = new Set(['RUN', 'COPY', 'ADD']);
const FLAG = /^--(?:mount|network|security|link|chmod|parents|exclude|checksum|keep-git-dir)\b/;
/** The text of a command in the file itself: RUN <<EOF. */
const HERE = /<<-?["']?[A-Za-z_]/;

function asks(line: string): boolean {
  const [instruction, ...words] = line.trim().split(/\s+/);
  if (!INSTRUCTIONS.has(instruction!.toUpperCase())) return false;
  // Flags stand before everything else.
  const end = words.findIndex((word) => !word.startsWith('--'));
  const flags = end === -1 ? words : words.slice(0, end);
  return HERE.test(line) || flags.some((word) => FLAG.test(word));
}

export const needsBuildKit = (text: string): boolean => text.split('\n').some(asks);
