/** What a verifier of its own gets from the agent's container: the files that the task names, after its own commands have made them. */

import type { HarborTask } from '../../../dataset/kinds/harbor/harborTask.ts';
import { type Environment, FilesTooLargeError, type PlacedFile } from '../../../environment/environment.ts';
import type { RunLog } from '../../createRunLog.ts';
import type { Ending } from '../gradingFrame.ts';
import { asUser } from './verifyTask.ts';

/** Always collected, as Harbor does. */
const ARTIFACTS = '/logs/artifacts';
const MAX_BYTES = 512 * 2 ** 20;

export type Collected =
  | { readonly ok: true; readonly files: readonly PlacedFile[] }
  | { readonly ok: false; readonly ending: Ending };

interface Collecting {
  readonly task: HarborTask;
  readonly instanceId: string;
  readonly signal?: AbortSignal | undefined;
}

const isLeftOut = (path: string, source: string, exclude: readonly string[]): boolean => {
  const below = path.slice(source.length).split('/').filter(Boolean);
  return exclude.some((name) => below.includes(name.replace(/^\.\//, '')));
};

/** The commands of `[[verifier.collect]]`, in the container that the agent left. */
export async function runCollectCommands(
  environment: Environment,
  log: RunLog,
  { task, instanceId, signal }: Collecting,
): Promise<void> {
  await environment.execute(`mkdir -p ${ARTIFACTS} && chmod 777 ${ARTIFACTS}`, { cwd: '/', signal });
  for (const { command, timeout_s, user } of task.verifier.collect) {
    const done = await environment.execute(asUser(command, user), { timeoutS: timeout_s, signal });
    // The verifier judges what is there: Harbor goes on too.
    if (done.exitCode !== 0)
      log.warn(
        `a collect command of ${instanceId} ended with ${done.exitCode}: ${done.output.slice(-400).trim()}`,
      );
  }
}

export async function collect(
  environment: Environment,
  log: RunLog,
  collecting: Collecting,
): Promise<Collected> {
  const { task, instanceId } = collecting;
  await runCollectCommands(environment, log, collecting);
  const wanted = [{ source: ARTIFACTS, exclude: [] as string[] }, ...task.artifacts];
  const files = new Map<string, PlacedFile>();
  try {
    for (const { source, exclude } of wanted)
      for (const file of (await environment.getFiles?.(source, MAX_BYTES)) ?? [])
        if (!isLeftOut(file.path, source, exclude)) files.set(file.path, file);
  } catch (error) {
    if (!(error instanceof FilesTooLargeError)) throw error;
    // Whoever worked in the container chose that.
    const errorMessage = `${instanceId}: ${error.message}, which is more than a verifier is given`;
    return {
      ok: false,
      ending: { outcome: 'invalid', resolved: false, resolvedStrict: false, errorMessage },
    };
  }
  log.info(
    `${files.size} files of ${instanceId} go to its verifier: ${[...files.keys()].slice(0, 20).join(', ')}`,
  );
  return { ok: true, files: [...files.values()] };
}
