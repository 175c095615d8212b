/** One Harbor task folder becomes an instance. What cannot be read or honoured becomes a reason; nothing here throws for a task. */
import { existsSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseReference } from '../../../base/imageReference.ts';
import { sha256 } from '../../../base/sha256.ts';
import { errorText } from '../../../base/text/errorText.ts';
import { instanceIdProblem } from '../../../base/text/instanceId.ts';
import { parseSize } from '../../../base/text/units.ts';
import { type Instance, instanceSchema } from '../../instance.ts';
import type { FolderTask } from '../datasetKind.ts';
import { builtImage } from './builtImage.ts';
import type { HarborTask, Room } from './harborTask.ts';
import { healthcheckScript } from './healthcheckScript.ts';
import { mcpServersIn } from './mcpServers.ts';
import { refusalsOf, withDefaults } from './refusals.ts';
import { hashOfFiles, type TaskFile, taskFiles, taskText } from './taskFiles.ts';
import { networkOf } from './taskNetwork.ts';
import { readTaskToml, type TaskToml, type TomlEnvironment } from './taskToml.ts';

export const HARBOR = 'harbor';

const megabytes = (size: string): number => Math.floor(parseSize(size) / 2 ** 20);

function roomOf({ cpus, memory_mb, memory, storage_mb, storage }: TomlEnvironment): Room {
  const ram = memory_mb ?? (memory === undefined ? undefined : megabytes(memory));
  const disk = storage_mb ?? (storage === undefined ? undefined : megabytes(storage));
  return {
    ...(cpus !== undefined && { cpus }),
    ...(ram !== undefined && { memory_mb: ram }),
    ...(disk !== undefined && { storage_mb: disk }),
  };
}

interface Folder {
  readonly path: string;
  readonly instruction: string;
  readonly toml: TaskToml;
  readonly environment: readonly TaskFile[];
  readonly tests: readonly TaskFile[];
  readonly hash: string;
}

const has = (files: readonly TaskFile[], name: string): boolean => files.some(({ path }) => path === name);

/** The image that is named, else the one that its folder builds. */
function imageOfFolder(named: string | undefined, files: readonly TaskFile[]): string | undefined {
  return named ?? (has(files, 'Dockerfile') ? builtImage(files) : undefined);
}

function separateVerifier({ toml, environment, tests }: Folder, image: string) {
  const { verifier } = toml;
  const own = verifier.environment ?? toml.environment;
  const { environment_mode = verifier.environment ? 'separate' : 'shared' } = verifier;
  if (environment_mode === 'shared') return undefined;
  const bundled = imageOfFolder(verifier.environment?.docker_image, tests);
  return {
    image: bundled ?? imageOfFolder(toml.environment.docker_image, environment) ?? image,
    bundled: bundled !== undefined,
    ...(own.workdir !== undefined && { workdir: own.workdir }),
    room: roomOf(own),
    env: withDefaults(own.env),
  };
}

function buildsIn(
  { toml, environment, tests }: Folder,
  images: readonly (string | undefined)[],
): HarborTask['builds'] {
  const ofTests = toml.verifier.environment ?? toml.environment;
  const possible = [
    ['environment', environment, toml.environment.build_timeout_sec] as const,
    ['tests', tests, ofTests.build_timeout_sec] as const,
  ];
  return possible.flatMap(([name, files, timeout_s]) => {
    const image = has(files, 'Dockerfile') ? builtImage(files) : undefined;
    return image !== undefined && images.includes(image) ? [{ image, folder: name, timeout_s }] : [];
  });
}

function harborTask(folder: Folder, image: string): HarborTask {
  const { toml, path, hash } = folder;
  const { environment, agent, verifier, artifacts } = toml;
  const separate = separateVerifier(folder, image);
  return {
    folder: path,
    files_sha256: hash,
    ...(environment.workdir !== undefined && { workdir: environment.workdir }),
    network: networkOf(environment, agent),
    room: roomOf(environment),
    env: withDefaults(environment.env),
    ...(environment.healthcheck && { healthcheck: healthcheckScript(environment.healthcheck) }),
    ...(environment.mcp_servers.length > 0 && { mcp_servers: mcpServersIn(environment.mcp_servers) }),
    agent: {
      ...(agent.timeout_sec !== undefined && { timeout_s: agent.timeout_sec }),
      ...(agent.user !== undefined && { user: agent.user }),
    },
    builds: buildsIn(folder, [image, separate?.image]),
    artifacts: artifacts.map(({ source, exclude }) => ({ source, exclude })),
    verifier: {
      timeout_s: verifier.timeout_sec,
      ...(verifier.user !== undefined && { user: verifier.user }),
      network: networkOf(separate ? (verifier.environment ?? environment) : environment, verifier),
      env: withDefaults(verifier.env),
      collect: verifier.collect.map(({ command, timeout_sec, user }) => ({
        ...{ command, timeout_s: timeout_sec },
        ...(user !== undefined && { user }),
      })),
      ...(separate && { separate }),
    },
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The address of the repository, else the organisation of the task. */
function repoOf({ metadata, task }: TaskToml): string {
  const parts = textOf(metadata.repository_url).split('/').filter(Boolean).slice(-2);
  const address = parts.length === 2 ? parts.join('/').replace(/\.git$/, '') : undefined;
  return address ?? task?.name ?? '';
}

function instanceOf(folder: Folder, id: string): Instance | { reason: string } {
  const { toml, environment, tests } = folder;
  const image = imageOfFolder(toml.environment.docker_image, environment);
  if (image === undefined) return { reason: 'it names no image and has no environment/Dockerfile' };
  const task = harborTask(folder, image);
  const { separate } = task.verifier;
  for (const name of [image, separate?.image ?? image]) {
    const parsed = parseReference(name);
    if (!parsed.ok) return { reason: `image ${parsed.message}` };
  }
  if (!separate?.bundled && !has(tests, 'test.sh')) return { reason: 'it has no tests/test.sh' };
  return instanceSchema.parse({
    instance_id: id,
    kind: HARBOR,
    repo: repoOf(toml),
    problem_statement: folder.instruction,
    difficulty: textOf(toml.metadata.difficulty),
    image,
    extra: { harbor: task, metadata: toml.metadata },
  });
}

const unread = (id: string, path: string, reason: string): FolderTask => {
  const named = instanceIdProblem(id) === null ? id : `unnamed-${sha256(id).slice(0, 12)}`;
  const instance = instanceSchema.parse({ instance_id: named, kind: HARBOR, problem_statement: '' });
  return { id: named, path, instance, hash: sha256(`${id}\n${reason}`), refused: reason, warnings: [] };
};

function readFolder(path: string, toml: TaskToml): Folder | { reason: string } {
  const instruction = taskText(path, 'instruction.md');
  // A task of several steps has its instructions below steps/, and is refused for its steps.
  if (instruction === undefined && !toml.steps?.length) return { reason: 'it has no instruction.md' };
  const environment = taskFiles(path, 'environment');
  const tests = taskFiles(path, 'tests');
  const hash = sha256(
    JSON.stringify([
      ...[instruction ?? '', taskText(path, 'task.toml')],
      ...[environment, tests, taskFiles(path, 'solution')].map(hashOfFiles),
    ]),
  );
  return { path, instruction: instruction ?? '', toml, environment, tests, hash };
}

export function readTask(dir: string): FolderTask {
  const id = basename(dir);
  const problem = instanceIdProblem(id);
  if (problem) return unread(id, dir, `the name of its folder ${problem}`);
  try {
    const path = realpathSync(dir);
    const read = readTaskToml(taskText(path, 'task.toml') ?? '');
    if (!read.ok) return unread(id, path, read.reason);
    const folder = readFolder(path, read.toml);
    if ('reason' in folder) return unread(id, path, folder.reason);
    const { environment, tests, toml, hash } = folder;
    const names = new Set([
      ...environment.map((file) => `environment/${file.path}`),
      ...tests.map((file) => `tests/${file.path}`),
      ...(existsSync(join(path, 'trajectory.json')) ? ['trajectory.json'] : []),
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
