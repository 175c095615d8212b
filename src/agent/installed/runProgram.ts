/** The program from its start to its end, in one long command: whoever ends it, what it wrote last is kept. */

import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTimer } from '../../base/async/timer.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import type { CommandResult, Environment } from '../../environment/environment.ts';
import { environmentKindOf } from '../../environment/environments.ts';
import type { Launch } from './launch.ts';

export interface ProgramFolders {
  /** Files of the launch; in a container only root writes there. */
  readonly files: string;
  /** The program's own folder; not in /tmp, where some refuse to keep theirs. */
  readonly home: string;
  /** What is there when the program has ended. */
  remove(): Promise<void>;
}

/** Attempts on this machine run beside each other: each has folders of its own. A container is gone with what is in it. */
export function programFolders({ info }: Pick<Environment, 'info'>): ProgramFolders {
  if (!environmentKindOf({ environment_class: info.kind }).onThisMachine)
    return { files: '/opt/swebatch-agent', home: '/var/tmp/swebatch-agent', remove: async () => {} };
  const own = join(tmpdir(), `swebatch-agent-${randomUUID()}`);
  return {
    ...{ files: join(own, 'files'), home: join(own, 'home') },
    remove: () => rm(own, { recursive: true, force: true }),
  };
}

export const promptFileIn = ({ files }: ProgramFolders): string => `${files}/prompt.txt`;

export interface ProgramRun {
  readonly environment: Environment;
  readonly launch: Launch;
  readonly folders: ProgramFolders;
  readonly prompt: string;
  /** Seconds; 0 is no limit. */
  readonly limitS: number;
  readonly signal?: AbortSignal | undefined;
  /** Something else has ended the attempt: resolves to how many milliseconds the program may still take to leave by itself. */
  readonly over: Promise<number>;
}

/** null: it had to be killed, and its output is not known. Throws EnvironmentError, and the signal's reason. */
export async function runProgram(run: ProgramRun): Promise<CommandResult | null> {
  const { environment, launch, folders, prompt, limitS, signal } = run;
  const files = { ...launch.files, 'prompt.txt': prompt };
  for (const [name, content] of Object.entries(files))
    await environment.putFile(`${folders.files}/${name}`, content);
  const killing = new AbortController();
  let timer: ReturnType<typeof startTimer> | undefined;
  let running = true;
  void run.over.then((leaveMs) => {
    if (running) timer = startTimer(leaveMs, () => killing.abort(new Error('the program did not leave')));
  });
  const signals = signal ? [signal, killing.signal] : [killing.signal];
  try {
    return await environment.execute(lineOf(launch, folders), {
      timeoutS: limitS,
      env: launch.env,
      signal: AbortSignal.any(signals),
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (killing.signal.aborted) return null;
    throw error;
  } finally {
    running = false;
    timer?.cancel();
  }
}

/** The copy is for programs that write beside their configuration, and run as whom the image says. */
const lineOf = ({ command }: Launch, { files, home }: ProgramFolders): string =>
  [
    `mkdir -p ${shellWord(home)} && cp -R ${shellWord(`${files}/.`)} ${shellWord(home)} || exit 125`,
    command,
  ].join('\n');
