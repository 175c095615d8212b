/**
 * Task repositories of SWE-bench 5 (swebench/task/repo.py of its package, 5.0.2): a folder for each task, from which its datasets are published.
 * The files there are columns of a row, so a task is graded as a row is. The task's image is built from its Dockerfile, and binary files that
 * its tests need lie in the folder.
 */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { OWN_HOST } from '../../base/imageReference.ts';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { sha256 } from '../../base/sha256.ts';
import { errorText } from '../../base/text/errorText.ts';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import { parsePythonYaml } from '../../base/text/yaml.ts';
import { type Instance, instanceSchema } from '../../dataset/instance.ts';
import { normaliseColumns } from '../../dataset/read/row.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import { MARK } from '../../grading/readLog.ts';
import { resolveGradeSpec, type SpecOptions } from '../../grading/specs/spec.ts';
import type { FolderTask, ImageBuild, Suite } from '../suite.ts';
import { evaluatePrediction, packageOf } from '../sweBench/sweBench.ts';
import { hashOfFiles, type TaskFile, TaskFolderError, taskFiles, taskText } from '../taskFiles.ts';

const NAME = 'swe-bench-tasks';
const TASKS = 'tasks';
const TASK = 'task.yaml';
const TESTS = 'tests.json';
const DOCKERFILE = 'Dockerfile';
const ASSETS = 'test_assets';
/** Links of a statement; nothing reads them. */
const ARCHIVED = 'problem_assets';
/** Columns that are files of their own. Newlines in a patch are its own, so they are read as they are. */
const FILES = {
  patch: 'gold.patch',
  test_patch: 'test.patch',
  eval_script: 'eval.sh',
  problem_statement: 'problem_statement.md',
} as const;
const REQUIRED = [
  'instance_id',
  'repo',
  'version',
  'base_commit',
  'split',
  'image',
  'log_parser',
  'eval_type',
];
/** The builds install whole systems. */
const BUILD_S = 2 * 3600;

export const taskRepository: Suite = {
  probes: packageOf,
  folders: { splits: splitsIn, read: readTasks, needed: true },
  refusal: ({ extra }) => (typeof extra.refused === 'string' ? extra.refused : undefined),
  builtImage: ({ extra }) => (typeof extra.built_image === 'string' ? extra.built_image : undefined),
  builds,
  grading,
};

const namesIn = (dir: string): string[] =>
  readdirSync(join(dir, TASKS), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(dir, TASKS, entry.name, TASK)))
    .map(({ name }) => name)
    .sort();

/** Throws what is wrong with the file. */
function factsIn(task: string): Readonly<Record<string, unknown>> {
  const facts = parsePythonYaml(taskText(task, TASK) ?? '');
  if (!isRecord(facts)) throw new TaskFolderError(`${TASK} holds no keys`);
  return facts;
}

/**
 * A task whose file cannot be read has no known split: it is in every split, so that it is told (observed:
 * tests/suites/taskRepository/taskRepository.test.ts).
 */
function splitOf(task: string): string | undefined {
  try {
    const { split } = factsIn(task);
    return typeof split === 'string' ? split : undefined;
  } catch {
    return undefined;
  }
}

/** The harness takes "test" where nothing is said. */
function splitsIn(dir: string): readonly string[] {
  const found = new Set(namesIn(dir).flatMap((name) => splitOf(join(dir, TASKS, name)) ?? []));
  return [...found].sort((a, b) => Number(b === 'test') - Number(a === 'test') || (a < b ? -1 : 1));
}

function readTasks(dir: string, split?: string): readonly FolderTask[] {
  return namesIn(dir)
    .filter((name) => split === undefined || [split, undefined].includes(splitOf(join(dir, TASKS, name))))
    .map((name) => taskIn(join(dir, TASKS, name), name));
}

function taskIn(path: string, id: string): FolderTask {
  const unsafe = instanceIdProblem(id);
  try {
    const files = taskFiles(path, '.').filter((file) => !file.path.startsWith(`${ARCHIVED}/`));
    const hash = hashOfFiles(files);
    if (unsafe !== null) return refusedTask(path, id, `its folder's name ${unsafe}`, hash);
    const read = normaliseColumns(columnsOf(path, id, files), NAME);
    if (!read.ok) return refusedTask(path, id, read.messages.join('; '), hash);
    return { id, path, instance: read.instance, hash, warnings: [] };
  } catch (error) {
    return refusedTask(path, id, errorText(error), sha256(id));
  }
}

function refusedTask(path: string, id: string, refused: string, hash: string): FolderTask {
  const instance = { instance_id: id, problem_statement: '', kind: NAME, extra: { refused } };
  const read = instanceSchema.safeParse(instance);
  // The name of its folder is none: nothing of it goes into the record.
  const known = read.success
    ? read.data
    : instanceSchema.parse({ ...instance, instance_id: `task-${sha256(id).slice(0, 12)}` });
  return { id: known.instance_id, path, instance: known, hash, refused, warnings: [] };
}

const testsSchema = z.object({ FAIL_TO_PASS: z.array(z.string()), PASS_TO_PASS: z.array(z.string()) });

/** The row of a task. Throws what stops its publication, as swebench/task/checks.py lists it. */
function columnsOf(path: string, id: string, files: readonly TaskFile[]): Readonly<Record<string, unknown>> {
  const lacks = [TESTS, DOCKERFILE, ...Object.values(FILES)].filter(
    (name) => !files.some((file) => file.path === name),
  );
  if (lacks.length > 0) throw new TaskFolderError(`it lacks ${lacks.join(', ')}`);
  const { datasets, ...facts } = factsIn(path);
  const missing = REQUIRED.filter((key) => facts[key] === undefined);
  if (missing.length > 0) throw new TaskFolderError(`${TASK} has no ${missing.join(', ')}`);
  if (facts.instance_id !== id) throw new TaskFolderError(`${TASK} says another instance_id than its folder`);
  const tests = testsIn(path);
  if (tests.FAIL_TO_PASS.length === 0)
    throw new TaskFolderError('no FAIL_TO_PASS, so that nothing grades it');
  const texts = Object.fromEntries(
    Object.entries(FILES).map(([column, name]) => [column, taskText(path, name)]),
  );
  const unmarked = [MARK.start, MARK.end].filter((mark) => !texts.eval_script?.includes(mark));
  if (unmarked.length > 0) throw new TaskFolderError(`${FILES.eval_script} does not write "${unmarked[0]}"`);
  const { image, ...others } = facts;
  const built = imageOf(files);
  return {
    ...others,
    ...texts,
    ...tests,
    hints_text: taskText(path, 'hints.md') ?? '',
    image: built,
    built_image: built,
    published_image: image,
    datasets: datasets ?? [],
    task_folder: path,
    /** By path in the repository: the hash of what is put there before the tests. */
    assets: Object.fromEntries(
      files.flatMap((file) =>
        file.path.startsWith(`${ASSETS}/`)
          ? [[file.path.slice(ASSETS.length + 1), sha256(file.content)]]
          : [],
      ),
    ),
  };
}

function testsIn(path: string): z.infer<typeof testsSchema> {
  let value: unknown;
  try {
    value = JSON.parse(taskText(path, TESTS) ?? '');
  } catch (error) {
    throw new TaskFolderError(`${TESTS} is not valid JSON: ${errorText(error)}`);
  }
  const read = testsSchema.safeParse(value);
  if (!read.success)
    throw new TaskFolderError(`${TESTS} has no lists of names under FAIL_TO_PASS and PASS_TO_PASS`);
  return read.data;
}

/** A Dockerfile may copy from its task's folder. Any other gets no files, so that no change of the tests makes another image. */
function contextOf(files: readonly TaskFile[]): readonly TaskFile[] {
  const dockerfile = files.find(({ path }) => path === DOCKERFILE)!;
  return /^[ \t]*(?:COPY|ADD)\s/im.test(Buffer.from(dockerfile.content).toString('utf8'))
    ? files
    : [dockerfile];
}

const imageOf = (files: readonly TaskFile[]): string =>
  `${OWN_HOST}/task:${hashOfFiles(contextOf(files)).slice(0, 32)}`;

/** Nothing, where somebody chose another image. */
function builds(instance: Instance): readonly ImageBuild[] {
  const { built_image: built, task_folder: path } = instance.extra;
  if (typeof built !== 'string' || typeof path !== 'string' || instance.image !== built) return [];
  const files = (): readonly TaskFile[] => {
    const all = taskFiles(path, '.').filter((file) => !file.path.startsWith(`${ARCHIVED}/`));
    if (imageOf(all) === built) return contextOf(all);
    throw new TaskFolderError(`${path} has changed since its image was named`);
  };
  return [{ image: built, files, timeoutS: BUILD_S }];
}

const assetsSchema = keyed(z.string());

function grading(instance: Instance, options: SpecOptions): PlannedGrading {
  const resolved = resolveGradeSpec(instance, options);
  if (!resolved.ok) return resolved;
  const assets = assetsSchema.safeParse(instance.extra.assets).data ?? {};
  const specHash = sha256(JSON.stringify([resolved.spec.specHash, assets]));
  const spec = { ...resolved.spec, specHash };
  const ownAsset = (path: string): Uint8Array | undefined => {
    const { task_folder: folder } = instance.extra;
    if (assets[path] === undefined || typeof folder !== 'string') return undefined;
    const file = taskFiles(folder, ASSETS).find((one) => one.path === path);
    if (file && sha256(file.content) === assets[path]) return file.content;
    throw new TaskFolderError('it has changed since the task was read');
  };
  return {
    ok: true,
    plan: { specHash, grade: (request) => evaluatePrediction({ ...request, spec, ownAsset }) },
  };
}
