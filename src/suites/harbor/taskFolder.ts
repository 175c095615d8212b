/** The files of a task folder. Nothing of it is judged here. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_HOST } from '../../base/imageReference.ts';
import { sha256 } from '../../base/sha256.ts';
import { hashOfFiles, type TaskFile, taskFiles, taskText } from '../taskFiles.ts';
import { harborFiles } from './harborIgnore.ts';
import type { TaskToml } from './taskToml.ts';

export interface StepFolder {
  /** The path below the task's folder: steps/NAME. */
  readonly path: string;
  readonly instruction: string | undefined;
  readonly tests: readonly TaskFile[];
}

export interface Folder {
  readonly path: string;
  readonly instruction: string | undefined;
  readonly toml: TaskToml;
  readonly environment: readonly TaskFile[];
  readonly tests: readonly TaskFile[];
  /** The steps in the order of task.toml. */
  readonly steps: readonly StepFolder[];
  /** Conversations that agents are to begin with, by their paths below the folder. */
  readonly trajectories: readonly string[];
  readonly hash: string;
}

const stepPath = (name: string): string => `steps/${name}`;
const TRAJECTORY = 'trajectory.json';

export const hasFile = (files: readonly TaskFile[], name: string): boolean =>
  files.some(({ path, isFolder }) => path === name && !isFolder);

export function readFolder(path: string, toml: TaskToml): Folder {
  const instruction = taskText(path, 'instruction.md');
  const environment = taskFiles(path, 'environment');
  const tests = harborFiles(path, 'tests');
  const steps = toml.steps.map(({ name }) => {
    const folder = stepPath(name);
    return {
      path: folder,
      instruction: taskText(path, `${folder}/instruction.md`),
      tests: harborFiles(path, `${folder}/tests`),
    };
  });
  const parts = [
    ...[instruction ?? '', taskText(path, 'task.toml')],
    ...[environment, tests, harborFiles(path, 'solution')].map(hashOfFiles),
    ...(steps.length > 0 ? [hashOfFiles(harborFiles(path, 'steps'))] : []),
  ];
  const trajectories = [TRAJECTORY, ...steps.map((step) => `${step.path}/${TRAJECTORY}`)];
  return {
    path,
    instruction,
    toml,
    environment,
    tests,
    steps,
    trajectories: trajectories.filter((name) => existsSync(join(path, name))),
    hash: sha256(JSON.stringify(parts)),
  };
}

// The name of an image that is built from a folder of a task: by its content, so that equal folders have one image.

export const builtImage = (files: readonly TaskFile[]): string =>
  `${OWN_HOST}/harbor:${hashOfFiles(files).slice(0, 32)}`;
