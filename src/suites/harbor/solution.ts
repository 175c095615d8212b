/** The reference solution of a task: solution/solve.sh, run as Harbor's oracle runs it, by the user and in the time of the agent. */
import type { Solution } from '../../agent/contract.ts';
import type { Instance } from '../../dataset/instance.ts';
import { harborTaskOf, readTask } from './readTask.ts';
import { hasFile, placedFiles, TaskFolderError, taskFiles, taskText } from './taskFolder.ts';
import { readTaskToml, withDefaults } from './taskToml.ts';

const FOLDER = '/solution';
const SCRIPT = 'solve.sh';

/** Of a step its own goes before that of the task. */
export function solutionOfTask(instance: Instance, step?: string): Solution | undefined {
  const { folder, files_sha256 } = harborTaskOf(instance);
  const own = step === undefined ? [] : taskFiles(folder, `steps/${step}/solution`);
  const files = own.length > 0 ? own : taskFiles(folder, 'solution');
  if (!hasFile(files, SCRIPT)) return undefined;
  return {
    async apply(environment, { timeoutS, signal }) {
      if (readTask(folder).hash !== files_sha256)
        throw new TaskFolderError(
          `the folder of the task has changed or is gone since the run began: ${folder}`,
        );
      const read = readTaskToml(taskText(folder, 'task.toml') ?? '');
      const env = read.ok ? withDefaults(read.toml.solution.env) : {};
      // What an agent left there in an earlier step is no part of it.
      await environment.execute(`rm -rf ${FOLDER}`, { cwd: '/', signal });
      await environment.putFiles?.(
        placedFiles(FOLDER, files).map((file) => ({ ...file, mode: file.mode | 0o111 })),
      );
      const done = await environment.execute(`${FOLDER}/${SCRIPT}`, {
        ...{ timeoutS, signal },
        env: { DEBIAN_FRONTEND: 'noninteractive', ...env },
      });
      const tail = done.output.trim().slice(-400);
      const how = done.timedOut
        ? `did not end within ${timeoutS} s`
        : `ended with exit code ${done.exitCode}`;
      return {
        says: `solution/${SCRIPT} ${how}${tail === '' ? '' : `; its last output: ${tail}`}`,
        timedOut: done.timedOut,
      };
    },
  };
}
