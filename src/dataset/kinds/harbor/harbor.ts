/** Harbor task folders: docs/datasets.md. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatasetKind } from '../datasetKind.ts';
import { builtImage } from './builtImage.ts';
import { type HarborTask, harborTaskOf } from './harborTask.ts';
import { HARBOR, readTask } from './readTask.ts';
import { TaskFolderError, taskFiles } from './taskFiles.ts';
import { taskSteps } from './taskSteps.ts';

const isTask = (dir: string): boolean => existsSync(join(dir, 'task.toml'));

function tasksIn(dir: string): string[] {
  if (isTask(dir)) return [dir];
  const below = (folder: string) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isFile() && !entry.name.startsWith('.'))
      .map(({ name }) => join(folder, name))
      .sort()
      .filter(isTask);
  const here = below(dir);
  // Repositories of tasks have them below tasks/.
  return here.length > 0 || !existsSync(join(dir, 'tasks')) ? here : below(join(dir, 'tasks'));
}

/** As `tasksIn` finds them, and no more than one of them. */
function hasTasks(dir: string): boolean {
  if (isTask(dir)) return true;
  const holds = (folder: string) =>
    readdirSync(folder).some((name) => !name.startsWith('.') && isTask(join(folder, name)));
  return holds(dir) || (existsSync(join(dir, 'tasks')) && holds(join(dir, 'tasks')));
}

/** What happens around the agent's work in its container: setup, capture. */
const AROUND_S = 1800;

/** Seconds that agents and verifiers may take while the container is there; undefined for no limit. */
function lifeOf({ agent, steps }: HarborTask): number | undefined {
  if (!steps) return agent.timeout_s;
  // Verifiers of steps run while the container of the agent waits.
  const limits = steps.map(({ agent_timeout_s: limit, verifier }) => limit && limit + verifier.timeout_s);
  return limits.reduce<number | undefined>((sum, one) => sum && one && sum + one + AROUND_S, AROUND_S);
}

export const harbor: DatasetKind = {
  name: HARBOR,
  folders: {
    is: hasTasks,
    read: (dir) => tasksIn(dir).map(readTask),
  },
  refusal: ({ extra }) =>
    extra.harbor === undefined ? String(extra.refused ?? 'its task could not be read') : undefined,
  container(instance) {
    const task = harborTaskOf(instance);
    const { workdir, network, room, env, healthcheck, agent } = task;
    const life = lifeOf(task);
    return {
      cwd: workdir ?? 'image',
      network,
      env,
      ...(room.cpus !== undefined && { cpus: room.cpus }),
      ...(room.memory_mb !== undefined && { memoryMb: room.memory_mb }),
      ...(room.storage_mb !== undefined && { diskMb: room.storage_mb }),
      ...(agent.user !== undefined && { user: agent.user }),
      ...(life !== undefined && { lifetimeS: life + AROUND_S }),
      ...(healthcheck !== undefined && { startupCommand: healthcheck }),
    };
  },
  processors(instance) {
    const { room, verifier, steps } = harborTaskOf(instance);
    const verifiers = steps?.map((step) => step.verifier) ?? [verifier];
    return Math.max(room.cpus ?? 0, ...verifiers.map(({ separate }) => separate?.room.cpus ?? 0));
  },
  agentTimeoutS: (instance) => harborTaskOf(instance).agent.timeout_s,
  builds(instance) {
    const { folder, builds } = harborTaskOf(instance);
    return builds.map(({ image, folder: part, timeout_s }) => ({
      image,
      timeoutS: timeout_s,
      files() {
        const files = taskFiles(folder, part);
        if (builtImage(files) === image) return files;
        throw new TaskFolderError(`${part} of ${instance.instance_id} has changed since its image was named`);
      },
    }));
  },
  steps: taskSteps,
  mcpServers: (instance) => harborTaskOf(instance).mcp_servers ?? [],
  keepsWork: true,
};
