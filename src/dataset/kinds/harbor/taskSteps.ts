/** The steps of a task as the agent's container gets them: what lies in steps/NAME/workdir goes into the work tree, and its setup.sh runs. */
import type { Instance } from '../../instance.ts';
import type { TaskStep } from '../datasetKind.ts';
import { harborTaskOf } from './harborTask.ts';
import { readTask } from './readTask.ts';
import { TaskFolderError, taskFiles } from './taskFiles.ts';

const SETUP = 'setup.sh';

export function taskSteps(instance: Instance): readonly TaskStep[] | undefined {
  const { steps, folder, files_sha256 } = harborTaskOf(instance);
  return steps?.map(({ name, instruction, agent_timeout_s: agentTimeoutS, healthcheck }) => ({
    ...{ name, instruction, agentTimeoutS, healthcheck, setup: SETUP },
    files() {
      if (readTask(folder).hash !== files_sha256)
        throw new TaskFolderError(
          `the folder of the task has changed or is gone since the run began: ${folder}`,
        );
      return taskFiles(folder, `steps/${name}/workdir`);
    },
  }));
}
