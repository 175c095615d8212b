/** Runs the client of a registry (npm, pip) on this machine, and tells how much has come while it works. */
import { type ExecFileException, execFile } from 'node:child_process';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startTimer } from '../../base/async/timer.ts';
import type { Variables } from '../caller.ts';
import { UserError } from '../userError.ts';

/** The time within which a registry has answered the first question, or the cause is told. */
export const ANSWER_MS = 15_000;
const LONGEST_ANSWER = 16 * 1024 * 1024;
const FETCH_LIMIT_MS = 30 * 60_000;

interface Answer {
  readonly ok: boolean;
  readonly text: string;
  readonly errors: string;
}

interface ClientRun {
  readonly env: Variables;
  readonly cwd: string;
  readonly limitMs?: number | undefined;
  /** The advice where the program is not on this machine. */
  readonly absent: string;
}

export function runClient(
  program: string,
  words: readonly string[],
  { env, cwd, limitMs = FETCH_LIMIT_MS, absent }: ClientRun,
): Promise<Answer> {
  // SIGKILL: a client that waits for its network may not leave when it is asked to.
  const options = {
    cwd,
    env: { ...env },
    maxBuffer: LONGEST_ANSWER,
    timeout: limitMs,
    killSignal: 'SIGKILL',
  } as const;
  return new Promise((resolve, reject) => {
    const done = (error: ExecFileException | null, stdout: string, stderr: string) => {
      if (error?.code === 'ENOENT')
        reject(new UserError(`${program} is not here, and agents are fetched with it`, { hint: absent }));
      else if (error?.killed)
        resolve({ ok: false, text: '', errors: `no answer within ${limitMs / 1000} seconds. ${stderr}` });
      else resolve({ ok: error === null, text: stdout, errors: stderr });
    };
    execFile(program, [...words], options, done);
  });
}

/** Bytes of the files that are below a folder now; what goes away meanwhile is not counted. */
async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += await bytesBelow(path);
    else bytes += (await lstat(path).catch(() => ({ size: 0 }))).size;
  }
  return bytes;
}

const SIZE_MS = 10_000;

/** Bytes of a file, as its server says before it sends it; undefined where it does not say, or wants a login or proxy that only its client has. */
export async function sizeAt(address: string): Promise<number | undefined> {
  try {
    const { ok, headers } = await fetch(address, { method: 'HEAD', signal: AbortSignal.timeout(SIZE_MS) });
    return (ok && Number(headers.get('content-length'))) || undefined;
  } catch {
    return undefined;
  }
}

const LOOK_MS = 500;

/** `total` where it is known: of one package, and not of all that another one needs. */
export type TellGrowth = (what: string, bytes: number, total?: number) => void;

/** The result of `work`; meanwhile `progress` gets the size of the folder twice a second. */
export async function watched<T>(
  what: string,
  folder: string,
  progress: TellGrowth | undefined,
  work: Promise<T>,
  size?: Promise<number | undefined>,
): Promise<T> {
  let over = false;
  let total: number | undefined;
  void size?.then((bytes) => {
    total = bytes;
  });
  let timer: ReturnType<typeof startTimer> | undefined;
  const look = async (): Promise<void> => {
    const bytes = await bytesBelow(folder);
    if (over) return;
    progress?.(what, bytes, total);
    timer = startTimer(LOOK_MS, () => void look());
  };
  if (progress) void look();
  try {
    return await work;
  } finally {
    over = true;
    timer?.cancel();
  }
}
