/**
 * What an image starts by its ENTRYPOINT, where a task means it to: the keeper is the first process, and this one runs beside it, as the image's
 * user, in the image's folder. An end state that is kept says what its image started, because the image itself names the keeper.
 */
import type Docker from 'dockerode';
import { z } from 'zod';
import type { Channel } from '../exec/channel.ts';
import { WORK_LABELS } from '../owner.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../places/dockerFault.ts';

const entrySchema = z.object({
  program: z.array(z.string()),
  user: z.string(),
  folder: z.string(),
  /** Whoever worked there may have changed or removed it. */
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
  /** Why nothing of it runs; undefined while it does, and where it ended as it wanted to. */
  failure(): Promise<string | undefined>;
}

/** Looks every tenth of a second until twice in a row nothing in the container ran and nobody's processor time had grown; fifty times at most. */
const SETTLED = `last= quiet=0 n=0
while [ $n -lt 50 ] && [ $quiet -lt 2 ]; do
  now= busy=
  for file in /proc/[0-9]*/stat; do
    { read -r line < "$file"; } 2>/dev/null || continue
    pid=\${line%% *}
    [ "$pid" = $$ ] && continue
    set -- \${line##*) }
    case $1 in R | D) busy=1 ;; esac
    now="$now $pid:\${12}:\${13}"
  done
  if [ -z "$busy" ] && [ "$now" = "$last" ]; then quiet=$((quiet + 1)); else quiet=0; fi
  last=$now n=$((n + 1))
  sleep 0.1
done`;

/**
 * What it starts in the background is loading when it hands over. Harbor's own set-up gives it a second or two before an agent's first command;
 * ours takes a few milliseconds, in which no server listens yet.
 */
export async function untilSettled(channel: Channel): Promise<void> {
  await channel.harness(SETTLED, { timeoutS: 60, maxBytes: 1024 });
}

/** It lives as long as the container. What it prints is nobody's. */
export async function startEntry(
  container: Docker.Container,
  { program, user, folder }: ImageEntry,
  given: readonly string[],
): Promise<RunningEntry> {
  const what = `the ENTRYPOINT of its image (${program.join(' ').slice(0, 200)})`;
  try {
    const wanted = { Cmd: [...program, ...given], User: user, WorkingDir: folder, Tty: false };
    // Nothing runs before its start: that alone is never asked for twice.
    const exec = await withDaemonRetry(() => daemonAnswer(container.exec(wanted)));
    await daemonAnswer(exec.start({ Detach: true }));
    return {
      async failure() {
        const { Running, ExitCode } = await withDaemonRetry(() => daemonAnswer(exec.inspect()));
        return Running || ExitCode === 0 ? undefined : `${what} ended with exit code ${ExitCode}`;
      },
    };
  } catch (error) {
    const { status, text, daemonGone } = readFault(error);
    if (daemonGone || status === undefined || status >= 500) throw error;
    return { failure: async () => `${what} could not be started: ${text}` };
  }
}
