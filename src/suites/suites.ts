/**
 * The suites, one line each, in the order in which they are asked. A line says how tasks of the suite are recognised; all else is in its folder and
 * loaded when the first of its tasks is met. Code that has an instance has its suite: the readers of instances, from files or the record, load it.
 */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Solution } from '../agent/contract.ts';
import { isRecord } from '../base/isRecord.ts';
import { errorFirst } from '../base/text/errorFirst.ts';
import type { Instance } from '../dataset/instance.ts';
import type { RawRow } from '../dataset/read/row.ts';
import { rememberRecipe } from '../environment/places/buildRecipes.ts';
import type { PlannedGrading } from '../grading/gradingFrame.ts';
import { applyPatch, PATCH_PATH } from '../grading/patchAndTests.ts';
import type { SpecOptions } from '../grading/specs/spec.ts';
import type { ReadRegistry, Suite, TaskNeeds } from './suite.ts';

interface SuiteLine {
  /** The name that instances say in `kind`. */
  readonly name: string;
  readonly isRow?: (raw: RawRow) => boolean;
  readonly isFolder?: (dir: string) => boolean;
  readonly load: () => Promise<Suite>;
  /** The registry of its datasets' names, for `--subset SUITE:NAME`. */
  readonly registry?: () => Promise<ReadRegistry>;
}

const SUITES: readonly SuiteLine[] = [
  {
    name: 'harbor',
    isFolder: (dir) => holds(dir, 'task.toml', '*/task.toml', 'tasks/*/task.toml'),
    load: async () => (await import('./harbor/harbor.ts')).harbor,
    registry: async () => (await import('./harbor/registry.ts')).harborRegistry,
  },
  {
    name: 'swe-bench-tasks',
    isFolder: (dir) => holds(dir, 'sweb.yaml', 'tasks/*/tests.json') && holds(dir, 'tasks/*/task.yaml'),
    load: async () => (await import('./taskRepository/taskRepository.ts')).taskRepository,
  },
  {
    name: 'multi-swe-bench',
    isRow: (raw) => raw.org != null && raw.number != null,
    load: async () => (await import('./multiSwe/multiSwe.ts')).multiSwe,
  },
  {
    name: 'swe-bench-pro',
    isRow: (raw) =>
      isText(raw.dockerhub_tag) ||
      (isText(raw.before_repo_set_cmd) && raw.selected_test_files_to_run !== undefined),
    isFolder: (dir) =>
      holds(dir, 'run_scripts/') &&
      holds(dir, '*.jsonl', '*.csv', 'helper_code/*.jsonl', 'helper_code/*.csv'),
    load: async () => (await import('./pro/pro.ts')).pro,
  },
  {
    name: 'swe-bench-live',
    isRow: (raw) => Array.isArray(raw.test_cmds),
    load: async () => (await import('./live/live.ts')).live,
  },
  {
    name: 'swe-rebench-v2',
    isRow: (raw) =>
      isRecord(raw.install_config) && String(raw.image ?? raw.image_name ?? '').includes('swerebenchv2/'),
    load: async () => (await import('./rebenchV2/rebenchV2.ts')).rebenchV2,
  },
  {
    name: 'swe-smith',
    isRow: ({ repo }) => isText(repo) && repo.startsWith('swesmith/'),
    load: async () => (await import('./smith/smith.ts')).smith,
  },
  {
    name: 'r2e-gym',
    isRow: (raw) =>
      raw.kind === 'r2e-gym' ||
      [raw.repo_name, raw.docker_image, raw.commit_hash].every((value) => isText(value) && value !== ''),
    load: async () => (await import('./r2eGym/r2eGym.ts')).r2eGym,
  },
];

/** Rows that no other suite knows, and instances without a kind. */
export const SWE_BENCH = 'swe-bench';
const sweBench: SuiteLine = {
  name: SWE_BENCH,
  load: async () => (await import('./sweBench/sweBench.ts')).sweBench,
};

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Whether something lies in a folder at one of these paths. `*` stands for any name that does not begin with a dot; a folder ends with "/". */
function holds(dir: string, ...paths: readonly string[]): boolean {
  return paths.some((path) => {
    const star = path.indexOf('*');
    if (star < 0) return existsSync(join(dir, path));
    const folder = join(dir, path.slice(0, star));
    const [ending = '', ...below] = path.slice(star + 1).split('/');
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return false;
    const names = readdirSync(folder).filter((name) => !name.startsWith('.') && name.endsWith(ending));
    return names.some((name) => existsSync(join(folder, name, ...below)));
  });
}

/** The name of the suite that a raw row is of. */
export const suiteOfRow = (raw: RawRow): string =>
  SUITES.find(({ isRow }) => isRow?.(raw))?.name ?? SWE_BENCH;

/** The name of the suite whose tasks a folder holds. */
export const suiteOfFolder = (dir: string): string | undefined =>
  SUITES.find(({ isFolder }) => isFolder?.(dir))?.name;

/** The registry of a suite; undefined where no suite of the name has one. */
export const registryOf = async (name: string): Promise<ReadRegistry | undefined> =>
  SUITES.find((line) => line.name === name)?.registry?.();

/** Names of suites that have a registry. */
export const REGISTRIES = SUITES.flatMap(({ name, registry }) => (registry ? [name] : []));

/** True where `--subset` is the address of tasks, which run/namedTasks.ts fetches. */
export const isTaskAddress = (source: string): boolean =>
  source.startsWith('git+') || ['hf', ...REGISTRIES].some((name) => source.startsWith(`${name}:`));

/** Loaded suites by name. */
const loaded = new Map<string, Suite>();

/** Loads a suite; undefined where no suite has the name. */
export async function loadSuite(name: string): Promise<Suite | undefined> {
  const known = loaded.get(name);
  if (known) return known;
  const suite = await [sweBench, ...SUITES].find((line) => line.name === name)?.load();
  if (suite) loaded.set(name, suite);
  return suite;
}

/** Loads the suites of instances that come from the record. */
export async function loadSuites(kinds: Iterable<string | null | undefined>): Promise<void> {
  for (const kind of new Set(kinds)) await loadSuite(kind ?? SWE_BENCH);
}

/** A record may name a suite that this version does not have: its tasks need nothing, and cannot be graded. */
const unknownSuite = (name: string): Suite => ({
  grading: ({ instance_id }) => ({
    ok: false,
    reason: `${instance_id} cannot be graded: no rules are known for tasks of kind "${name}"`,
  }),
});

/** The suite of an instance, which the reader of the instance has loaded. */
export function suiteOf({ kind = SWE_BENCH }: Pick<Instance, 'kind'>): Suite {
  const suite = loaded.get(kind);
  if (suite) return suite;
  if ([sweBench, ...SUITES].some(({ name }) => name === kind))
    throw new Error(`the suite ${kind} was not loaded`);
  return unknownSuite(kind);
}

/** The needs of a task; a row of SWE-bench has none. */
export const needsOf = (instance: Instance): TaskNeeds => suiteOf(instance).needs?.(instance) ?? {};

/** The state of the container judges the task: a patch says nothing of the work. */
export const isJudgedByState = (instance: Instance): boolean => suiteOf(instance).finish !== undefined;

/** The Python package that tells the right environment of a task's image from a wrong one. */
export const probedPackageOf = (instance: Instance): string | undefined =>
  suiteOf(instance).probes?.(instance);

/** Says how the images of an instance are built that no registry has, before anybody asks for them. Returns their names. */
export function rememberBuilds(instance: Instance): string[] {
  const builds = suiteOf(instance).builds?.(instance) ?? [];
  for (const { image, ...recipe } of builds) rememberRecipe(image, recipe);
  return builds.map(({ image }) => image);
}

/** The solution that a task brings: its suite's, else the gold patch of its row. */
export function solutionOf(instance: Instance, part?: string): Solution | undefined {
  const suite = suiteOf(instance);
  if (suite.solution) return suite.solution(instance, part);
  return instance.patch === '' ? undefined : goldPatch(instance);
}

/** How an instance is graded. */
export function planGrading(instance: Instance, options: SpecOptions = {}): PlannedGrading {
  const suite = suiteOf(instance);
  const refused = suite.refusal?.(instance);
  if (refused !== undefined)
    return { ok: false, reason: `${instance.instance_id} cannot be graded: ${refused}` };
  // An image of the tests is asked for by nobody else.
  rememberBuilds(instance);
  return suite.grading(instance, options);
}

// The gold patch of a row as the solution of its task.

/** The limit of each command of the ladder where there is none. */
const APPLY_S = 600;

const goldPatch = ({ patch }: Instance): Solution => ({
  async apply(environment, { timeoutS, signal }) {
    const { cwd } = environment.templateVars();
    await environment.putFile(PATCH_PATH, patch);
    const at = { cwd: typeof cwd === 'string' ? cwd : '/', timeoutS: timeoutS || APPLY_S, signal };
    const { method, output } = await applyPatch(environment, 'v5', at);
    await environment.execute(`rm -f ${PATCH_PATH}`, { cwd: '/', signal });
    if (method !== null) return { says: `the gold patch was applied by "${method}"`, timedOut: false };
    // The grading then says what it says of any such patch.
    return {
      says: `the gold patch does not apply where an agent works: ${errorFirst(output, 400)}`,
      timedOut: false,
      submission: patch,
    };
  },
});
