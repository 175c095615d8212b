/**
 * Datasets by name: read, checked (kinds, images, licence, and everything that will not run or cannot be graded here, with the reason), and
 * added: a folder or a file where it lies, a hub id from the cache, a git repository as a clone at one commit.
 */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { inert } from '../base/text/inert.ts';
import { type Dataset, readInstance } from '../dataset/dataset.ts';
import { imagesProblem } from '../dataset/imageNames.ts';
import { type Instance, imageOf } from '../dataset/instance.ts';
import { addedDataset, nameProblem, rememberDataset } from '../dataset/read/addedDatasets.ts';
import type { HubEnv } from '../dataset/read/locate.ts';
import { environmentConfigSchema } from '../environment/environments.ts';
import { clientVariable } from '../model/names.ts';
import type { Calibrated, GoldStanding } from '../store/records/evaluations.ts';
import { type LoadOptions, loadDataset } from '../suites/loadDataset.ts';
import { isTaskAddress, needsOf, planGrading, SWE_BENCH } from '../suites/suites.ts';
import { cloned, fetchTasks } from './namedTasks.ts';
import { refusalsOf, type TaskFacts } from './plan/checks.ts';
import { gradedTaskFacts, reasonsOf } from './plan/refusedTasks.ts';
import { UserError } from './userError.ts';

/**
 * The rows of a dataset. Throws a UserError with every reason why it cannot be used. `env` has the settings of the hub. Tasks by an address
 * that was never asked for are fetched first, which `say` tells.
 */
export async function requireDataset(
  source: string,
  options: LoadOptions,
  say: (text: string) => void = () => {},
): Promise<Dataset> {
  const { env } = options;
  if (env && isTaskAddress(source)) {
    const pinned = addedDataset(source, env);
    if (!pinned) await pinTasks(source, { env, say });
    else if (!existsSync(pinned.path)) await pinTasks(source, { ...{ env, say }, pinned });
  }
  return loadedDataset(source, options);
}

async function loadedDataset(source: string, options: LoadOptions): Promise<Dataset> {
  const loaded = await loadDataset(source, options);
  if (loaded.ok) return loaded.dataset;
  const problems = loaded.problems.map(({ message }) => `  ${inert(message)}`);
  throw new UserError(
    `the dataset cannot be used; ${problems.length} problem(s) in ${source}:\n${problems.join('\n')}`,
  );
}

interface PinOptions {
  readonly env: HubEnv;
  readonly say: (text: string) => void;
  readonly images?: string | undefined;
  /** The lost copy's facts: no other tasks may take its place. */
  readonly pinned?: { readonly fileHash: string; readonly images?: string | undefined };
}

/** Fetches tasks as they are now. From here on their address stands for them. */
export async function pinTasks(source: string, options: PinOptions) {
  const { env, say, pinned, images = pinned?.images } = options;
  const { path, revision } = await fetchTasks(source, env, say);
  const dataset = await loadedDataset(path, { images, env });
  if (pinned && dataset.fileHash !== pinned.fileHash)
    throw new UserError(`${source} was fetched again, for its copy was gone, and is not what it was`, {
      hint: 'pull the dataset to take it as it is now',
    });
  await remember(source, { source, path, revision, images }, dataset, env);
  return { name: source, ...(await checkDataset(dataset)), revision };
}

export interface Unfit {
  readonly instance_id: string;
  /** `refused`: the task does not start. `ungradable`: the task runs, and gets no verdict. */
  readonly what: 'refused' | 'ungradable';
  readonly why: string;
}

export interface CheckedDataset {
  readonly source: string;
  readonly path: string;
  readonly revision: string | null;
  readonly sha256: string;
  /** "swe-bench" to 500. */
  readonly kinds: Readonly<Record<string, number>>;
  readonly instances: number;
  readonly gradable: number;
  readonly images: number;
  /** The licence as the dataset states it; null where it states none. */
  readonly licence: string | null;
  readonly unfit: readonly Unfit[];
  /** Needs that a user must meet, with the number of tasks that have each: `suite.judge`, `suite.env=NAME`, GPUs. Absent where none has any. */
  readonly wants?: Readonly<Record<string, number>>;
  /** The rate of the solutions of its tasks on this machine; absent where none was tried. */
  readonly oracle?: OracleRate;
}

interface OracleRate {
  readonly passes: number;
  readonly tried: number;
  /** Tasks that did not pass, or pass without any work, with the reason where one is known. */
  readonly others: readonly {
    readonly instance_id: string;
    readonly standing: GoldStanding;
    readonly why: string | null;
  }[];
}

/** By the rules that the dataset has now: a verdict by others is none. */
function oracleRate(
  specs: ReadonlyMap<string, string>,
  known: readonly Calibrated[],
): OracleRate | undefined {
  const tried = known.filter(({ instance_id, spec_hash }) => specs.get(instance_id) === spec_hash);
  if (tried.length === 0) return undefined;
  const others = tried.flatMap(({ instance_id, standing, message }) =>
    standing === 'passes' ? [] : [{ instance_id, standing, why: message }],
  );
  return { passes: tried.length - others.length, tried: tried.length, others };
}

const LICENCE_FILES = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE', 'COPYING'];

/** The first line of the licence beside the data, or the field of a dataset card. */
function licenceOf(path: string): string | null {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  for (const folder of isFolder ? [path] : [dirname(path), dirname(dirname(path))]) {
    const card = join(folder, 'README.md');
    const field = existsSync(card) && /^licen[sc]e: *(\S.{0,80})$/m.exec(readFileSync(card, 'utf8'))?.[1];
    if (field) return field;
    const file = LICENCE_FILES.map((name) => join(folder, name)).find((each) => existsSync(each));
    const text =
      file &&
      readFileSync(file, 'utf8')
        .split('\n')
        .find((line) => line.trim() !== '');
    if (text) return text.trim().slice(0, 80);
  }
  return null;
}

function wantsOf(instance: Instance): Set<string> {
  const { variables = [], gpus = 0 } = needsOf(instance);
  return new Set([
    ...variables.flatMap(({ name, hasDefault, reader }) => {
      if (hasDefault) return [];
      return reader === 'verifier' && clientVariable(name) ? ['suite.judge'] : [`suite.env=${name}`];
    }),
    ...(gpus > 0 ? ['GPUs'] : []),
  ]);
}

/** Facts of a dataset that hold on every machine. */
const GRADED: TaskFacts = { run: [{ graded: true }], engine: [], machine: [], arm: [], grader: [{}] };

/** `known`: results of earlier calibrations. */
export async function checkDataset(
  dataset: Dataset,
  known: readonly Calibrated[] = [],
  facts: TaskFacts = GRADED,
): Promise<CheckedDataset> {
  const tried = new Set(known.map(({ instance_id }) => instance_id));
  const specs = new Map<string, string>();
  const unfit: Unfit[] = [];
  const kinds = new Map<string, number>();
  const images = new Set<string>();
  const wants = new Map<string, number>();
  for (const row of dataset.rows) {
    const instance = readInstance(row);
    const { instance_id, kind = SWE_BENCH } = instance;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    images.add(imageOf(instance));
    const { refused } = row;
    const refusals = await refusalsOf({ instance, ...(refused !== undefined && { refused }) }, facts);
    const [first] = refusals;
    if (first) {
      const what = first.of === 'run' ? 'refused' : 'ungradable';
      unfit.push({ instance_id, what, why: reasonsOf(refusals) });
    }
    if (first?.of === 'run') continue;
    for (const what of wantsOf(instance)) wants.set(what, (wants.get(what) ?? 0) + 1);
    const planned = tried.has(instance_id) ? planGrading(instance) : undefined;
    if (planned?.ok) specs.set(instance_id, planned.plan.specHash);
  }
  const oracle = oracleRate(specs, known);
  return {
    source: dataset.source,
    path: dataset.path,
    revision: dataset.revision,
    sha256: dataset.fileHash,
    kinds: Object.fromEntries(kinds),
    instances: dataset.rows.length,
    gradable: dataset.rows.length - unfit.length,
    images: images.size,
    licence: licenceOf(dataset.path),
    unfit,
    ...(wants.size > 0 && { wants: Object.fromEntries(wants) }),
    ...(oracle && { oracle }),
  };
}

/** The same with what the engine of this machine refuses, as a run would. */
export async function checkDatasetHere(
  dataset: Dataset,
  known: readonly Calibrated[] = [],
): Promise<CheckedDataset> {
  const arms = [{ environment: environmentConfigSchema.parse({}) }];
  const facts = await gradedTaskFacts(dataset.rows, arms);
  return checkDataset(dataset, known, { ...GRADED, engine: facts.engine });
}

interface AddOptions {
  readonly source: string;
  readonly split?: string | undefined;
  /** Branch, tag or commit. */
  readonly revision?: string | undefined;
  readonly dataDir?: string | undefined;
  /** Names of images in the place of those that rows name: a builder of imageNames.ts, or a pattern with {id}. */
  readonly images?: string | undefined;
  readonly env: HubEnv;
}

const isRepository = (source: string): boolean =>
  /^(?:https?|ssh|git|file):\/\//.test(source) || /^[\w.-]+@[\w.-]+:/.test(source);

/** The last part of a path or an address, without its ending. */
const nameOf = (source: string): string =>
  basename(isRepository(source) ? source : resolve(source)).replace(
    /\.(?:git|jsonl|ndjson|json|parquet|csv)$/,
    '',
  );

/** The name is what `--subset` takes from now on. */
export async function addDataset(options: AddOptions, say: (text: string) => void = () => {}) {
  const { source, split, dataDir, images, env } = options;
  const wrong = images === undefined ? null : imagesProblem(images);
  if (wrong !== null) throw new UserError(`the choice of images ${JSON.stringify(images)} ${wrong}`);
  if (isTaskAddress(source)) return pinTasks(source, { env, say, images });
  const name = nameOf(source);
  const problem = nameProblem(name);
  if (problem !== null)
    throw new UserError(`${JSON.stringify(name)} ${problem}, so nothing can be added by it`);
  const clone = isRepository(source) ? await cloned(source, name, options.revision, env) : undefined;
  const place = clone?.path ?? (existsSync(source) ? resolve(source) : source);
  const revision = clone ? undefined : options.revision;
  const dataset = await loadedDataset(place, { split, revision, dataDir, images, env });
  const found = clone?.commit ?? dataset.revision;
  await remember(name, { source, path: place, revision: found, images }, dataset, env);
  return { name, ...(await checkDataset(dataset)), revision: found };
}

async function remember(
  name: string,
  {
    images,
    ...of
  }: {
    readonly source: string;
    readonly path: string;
    readonly revision: string | null;
    readonly images: string | undefined;
  },
  { split, fileHash }: Dataset,
  env: HubEnv,
): Promise<void> {
  const chosen = images === undefined ? {} : { images };
  await rememberDataset(name, { ...of, split, fileHash, ...chosen, addedAt: new Date().toISOString() }, env);
}
