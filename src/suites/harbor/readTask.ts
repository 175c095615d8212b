/** One Harbor task folder becomes an instance. What cannot be read or honoured becomes a reason; nothing here throws for a task. */
import { realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { parseReference } from '../../base/imageReference.ts';
import { sha256 } from '../../base/sha256.ts';
import { errorText } from '../../base/text/errorText.ts';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import { type Instance, instanceSchema } from '../../dataset/instance.ts';
import type { FolderTask } from '../suite.ts';
import type { HarborTask } from './harborTask.ts';
import { refusalsOf } from './refusals.ts';
import { type Folder, hasFile, imageOfFolder, readFolder, taskText } from './taskFolder.ts';
import { harborTask } from './taskParts.ts';
import { readTaskToml, type TaskToml } from './taskToml.ts';

export const HARBOR = 'harbor';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The address of the repository, else the organisation of the task. */
function repoOf({ metadata, task }: TaskToml): string {
  const parts = textOf(metadata.repository_url).split('/').filter(Boolean).slice(-2);
  const address = parts.length === 2 ? parts.join('/').replace(/\.git$/, '') : undefined;
  return address ?? task?.name ?? '';
}

/** What the agent is asked; of several steps each in its order, for people: the agent gets one at a time. */
function statementOf({ instruction = '', toml, steps }: Folder): string {
  if (steps.length === 0) return instruction;
  return steps.map((step, i) => `# Step ${i + 1}: ${toml.steps[i]!.name}\n\n${step.instruction}`).join('\n');
}

/** Files without which nothing can be asked or judged. */
function missing({ instruction, tests, steps }: Folder, task: HarborTask): string | undefined {
  if (!task.steps) {
    if (instruction === undefined) return 'it has no instruction.md';
    return task.verifier.separate?.bundled || hasFile(tests, 'test.sh')
      ? undefined
      : 'it has no tests/test.sh';
  }
  const reasons = steps.flatMap((step, i) => {
    if (step.instruction === undefined) return [`it has no ${step.path}/instruction.md`];
    if (task.steps![i]!.verifier.separate?.bundled) return [];
    if (hasFile(step.tests, 'test.sh') || hasFile(tests, 'test.sh')) return [];
    return [`it has neither ${step.path}/tests/test.sh nor tests/test.sh`];
  });
  return reasons[0];
}

function instanceOf(folder: Folder, id: string): Instance | { reason: string } {
  const { toml, environment } = folder;
  const image = imageOfFolder(toml.environment.docker_image, environment);
  if (image === undefined) return { reason: 'it names no image and has no environment/Dockerfile' };
  const task = harborTask(folder, image);
  const verifiers = task.steps?.map(({ verifier }) => verifier) ?? [task.verifier];
  for (const name of [image, ...verifiers.flatMap(({ separate }) => separate?.image ?? [])]) {
    const parsed = parseReference(name);
    if (!parsed.ok) return { reason: `image ${parsed.message}` };
  }
  const reason = missing(folder, task);
  if (reason !== undefined) return { reason };
  return instanceSchema.parse({
    instance_id: id,
    kind: HARBOR,
    repo: repoOf(toml),
    problem_statement: statementOf(folder),
    difficulty: textOf(toml.metadata.difficulty),
    image,
    extra: { harbor: task, metadata: toml.metadata },
  });
}

const unread = (id: string, path: string, reason: string): FolderTask => {
  const named = instanceIdProblem(id) === null ? id : `unnamed-${sha256(id).slice(0, 12)}`;
  const instance = instanceSchema.parse({
    instance_id: named,
    kind: HARBOR,
    problem_statement: '',
    extra: { refused: reason },
  });
  return { id: named, path, instance, hash: sha256(`${id}\n${reason}`), refused: reason, warnings: [] };
};

export function readTask(dir: string): FolderTask {
  const id = basename(dir);
  const problem = instanceIdProblem(id);
  if (problem) return unread(id, dir, `the name of its folder ${problem}`);
  try {
    const path = realpathSync(dir);
    const read = readTaskToml(taskText(path, 'task.toml') ?? '');
    if (!read.ok) return unread(id, path, read.reason);
    const folder = readFolder(path, read.toml);
    const { environment, tests, steps, toml, hash } = folder;
    const names = new Set([
      ...environment.map((file) => `environment/${file.path}`),
      ...tests.map((file) => `tests/${file.path}`),
      ...steps.flatMap((step) => step.tests.map((file) => `${step.path}/tests/${file.path}`)),
      ...folder.trajectories,
    ]);
    const [refused, ...more] = refusalsOf(toml, names);
    const instance =
      refused === undefined ? instanceOf(folder, id) : { reason: [refused, ...more].join('; ') };
    if ('reason' in instance) return { ...unread(id, path, instance.reason), warnings: read.warnings };
    return { id, path, instance, hash, warnings: read.warnings };
  } catch (error) {
    return unread(id, dir, errorText(error));
  }
}
