/**
 * The ENTRYPOINT of an image, where a task starts it: the keeper is the first process, and the ENTRYPOINT runs beside it, as the image's
 * user, in the image's folder. An end state that is kept says what its image started, because the image itself names the keeper.
 */
import type Docker from 'dockerode';
import { z } from 'zod';
import { probe } from '../exec/plainExec.ts';
import type { StartProcess } from '../exec/transport.ts';
import { WORK_LABELS } from '../owner.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../places/dockerFault.ts';
import { shellScript } from '../shellScript.ts';

const entrySchema = z.object({
  program: z.array(z.string()),
  user: z.string(),
  folder: z.string(),
  /** An agent may have changed or removed the program. */
  worked: z.boolean().default(true),
});
export type ImageEntry = z.infer<typeof entrySchema>;

/** `program` is empty where the image names none. */
export function entryOf({ Config: config }: Pick<Docker.ImageInspectInfo, 'Config'>): ImageEntry {
  const label = config.Labels?.[WORK_LABELS.entry];
  if (label !== undefined) return entrySchema.parse(JSON.parse(label));
  const { Entrypoint: program } = config;
  return {
    program: typeof program === 'string' ? [program] : (program ?? []),
    user: config.User || '0',
    folder: config.WorkingDir || '/',
    worked: false,
  };
}

export const entryLabel = ({ program, user, folder }: ImageEntry): string =>
  JSON.stringify({ program, user, folder });

export interface RunningEntry {
  runs(): Promise<boolean>;
  /** Why nothing of the ENTRYPOINT runs; undefined while it runs, and where it ended as it wanted to. */
  failure(): Promise<string | undefined>;
}

/** Names of root in an image or a task; no name means root too. */
const ROOT: ReadonlySet<string> = new Set(['', 'root', '0', '0:0', 'root:root']);
export const sameUser = (one = '', other = ''): boolean =>
  one === other || (ROOT.has(one) && ROOT.has(other));

const UNTIL_SETTLED = shellScript('inside/untilSettled.sh', import.meta.url);
const SETTLE_LIMIT_MS = 60_000;

/** Starts the ENTRYPOINT, which lives as long as the container; nobody reads its output. Resolves when it is ready. */
export async function startEntry(
  container: Docker.Container,
  { program, user, folder }: ImageEntry,
  given: readonly string[],
  startProcess: StartProcess,
): Promise<RunningEntry> {
  const what = `the ENTRYPOINT of its image (${program.join(' ').slice(0, 200)})`;
  try {
    const wanted = { Cmd: [...program, ...given], User: user, WorkingDir: folder, Tty: false };
    // Nothing runs before its start: that alone is never asked for twice.
    const exec = await withDaemonRetry(() => daemonAnswer(container.exec(wanted)));
    await daemonAnswer(exec.start({ Detach: true }));
    // Servers in its background still load when it hands over. Harbor's own set-up gives them a second or two before an agent's first command;
    // ours takes a few milliseconds, in which no server listens yet (observed: tests/suites/harbor/entryPoint.test.ts).
    await probe(startProcess, ['sh', '-c', UNTIL_SETTLED], SETTLE_LIMIT_MS);
    return {
      async runs() {
        const { Running } = await withDaemonRetry(() => daemonAnswer(exec.inspect()));
        return Running;
      },
      async failure() {
        const { Running, ExitCode } = await withDaemonRetry(() => daemonAnswer(exec.inspect()));
        return Running || ExitCode === 0 ? undefined : `${what} ended with exit code ${ExitCode}`;
      },
    };
  } catch (error) {
    const { status, text, daemonGone } = readFault(error);
    if (daemonGone || status === undefined || status >= 500) throw error;
    return { runs: async () => false, failure: async () => `${what} could not be started: ${text}` };
  }
}
