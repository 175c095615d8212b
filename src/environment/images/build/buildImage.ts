/** Builds an image from a Dockerfile by the engine's own builder. The network is open in the build alone. The log is kept. */
import { join } from 'node:path';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { writeAtomically } from '../../../base/files/atomicWrite.ts';
import { makeFolder } from '../../../base/files/makeFolder.ts';
import { errorText } from '../../../base/text/errorText.ts';
import type { PullEvent } from '../imageEngine.ts';
import { type BuildRecipe, recipeOf } from './buildRecipes.ts';

const MEMORY_BYTES = 8 * 2 ** 30;
/** Of the log, in a message: its end says what failed. */
const SHOWN = 1500;
/** Of the log, in its file. */
const KEPT = 4 * 2 ** 20;

/** By its beginning a failed build is known from a failed pull. */
export const BUILD_FAILED = 'the build failed';

interface BuildLine {
  readonly stream?: string;
  readonly status?: string;
  readonly error?: string;
}

export interface BuildRequest {
  readonly image: string;
  readonly platform?: string | undefined;
  readonly signal: AbortSignal;
  readonly onEvent: (event: PullEvent) => void;
  /** Folder of the logs; without it none is written. */
  readonly logDir?: string | undefined;
}

function contextOf({ files }: BuildRecipe): NodeJS.ReadableStream {
  const pack = tar.pack();
  for (const { path, content, executable } of files())
    pack.entry({ name: path, mode: executable ? 0o755 : 0o644 }, Buffer.from(content));
  pack.finalize();
  return pack as unknown as NodeJS.ReadableStream;
}

/** Reads the engine's lines to their end. Returns the error that it names. */
async function follow(
  stream: NodeJS.ReadableStream,
  write: (text: string) => void,
): Promise<string | undefined> {
  let rest = '';
  let error: string | undefined;
  const line = (text: string) => {
    if (text.trim() === '') return;
    const said = JSON.parse(text) as BuildLine;
    error ??= said.error;
    write(said.error ?? said.stream ?? (said.status === undefined ? '' : `${said.status}\n`));
  };
  stream.setEncoding('utf8');
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) line(text);
  }
  line(rest);
  return error;
}

export async function buildImage(docker: Docker, request: BuildRequest): Promise<void> {
  const { image, platform, onEvent, logDir } = request;
  const recipe = recipeOf(image);
  if (!recipe) throw new Error(`${BUILD_FAILED}: nobody says what ${image} is built from`);
  const deadline = AbortSignal.timeout(recipe.timeoutS * 1000);
  const signal = AbortSignal.any([request.signal, deadline]);
  let log = '';
  const write = (text: string) => {
    log = (log + text).slice(-KEPT);
    onEvent({ status: text.trim().slice(0, 200) });
  };
  const failed = (why: string) =>
    new Error(`${BUILD_FAILED}: ${why}. The end of its log: ${log.trim().slice(-SHOWN)}`);
  try {
    const stream = await docker.buildImage(contextOf(recipe), {
      ...{ t: image, rm: true, forcerm: true, memory: MEMORY_BYTES, abortSignal: signal },
      ...{ labels: { 'swebatch.build': image }, ...(platform !== undefined && { platform }) },
    });
    signal.addEventListener('abort', () => (stream as unknown as { destroy(): void }).destroy(), {
      once: true,
    });
    const error = await follow(stream, write);
    if (error !== undefined) throw failed(error);
  } catch (error) {
    request.signal.throwIfAborted();
    if (deadline.aborted) throw failed(`it did not end within ${recipe.timeoutS} s`);
    throw errorText(error).startsWith(BUILD_FAILED) ? error : failed(errorText(error));
  } finally {
    if (logDir !== undefined) await keepLog(logDir, image, log);
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
