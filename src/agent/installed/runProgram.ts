/** The program from its start to its end, in one long command: whoever ends it, what it wrote last is kept. */
import { startTimer } from '../../base/async/timer.ts';
import type { CommandResult, Environment } from '../../environment/environment.ts';
import { type Launch, shellWord } from './launch.ts';

/** Files of the launch, where only root writes. */
export const LAUNCH_FOLDER = '/opt/swebatch-agent';
/** The program's own folder; not in /tmp, where some refuse to keep theirs. */
export const PROGRAM_HOME = '/var/tmp/swebatch-agent';
export const PROMPT_FILE = `${LAUNCH_FOLDER}/prompt.txt`;

export interface ProgramRun {
  readonly environment: Environment;
  readonly launch: Launch;
  readonly prompt: string;
  /** Seconds; 0 is no limit. */
  readonly limitS: number;
  readonly signal?: AbortSignal | undefined;
  /** Something else has ended the attempt: resolves to how many milliseconds the program may still take to leave by itself. */
  readonly over: Promise<number>;
}

/** null: it had to be killed, and its output is not known. Throws EnvironmentError, and the signal's reason. */
export async function runProgram(run: ProgramRun): Promise<CommandResult | null> {
  const { environment, launch, prompt, limitS, signal } = run;
  const files = { ...launch.files, 'prompt.txt': prompt };
  for (const [name, content] of Object.entries(files))
    await environment.putFile(`${LAUNCH_FOLDER}/${name}`, content);
  const killing = new AbortController();
  let timer: ReturnType<typeof startTimer> | undefined;
  let running = true;
  void run.over.then((leaveMs) => {
    if (running) timer = startTimer(leaveMs, () => killing.abort(new Error('the program did not leave')));
  });
  const signals = signal ? [signal, killing.signal] : [killing.signal];
  try {
    return await environment.execute(lineOf(launch), {
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
const lineOf = ({ command }: Launch): string =>
  [
    `mkdir -p ${shellWord(PROGRAM_HOME)} && cp -R ${LAUNCH_FOLDER}/. ${shellWord(PROGRAM_HOME)} || exit 125`,
    command,
  ].join('\n');
