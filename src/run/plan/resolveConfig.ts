/** Resolves configuration files, `key=value` and sections into arms; one arm for each model. */

import { readFileSync } from 'node:fs';
import { nameWithoutModel } from '../../agent/agents.ts';
import { isRecord } from '../../base/isRecord.ts';
import { sha256 } from '../../base/sha256.ts';
import { fileErrorText } from '../../base/text/errorText.ts';
import {
  configHash,
  configSchema,
  type DatasetConfig,
  type RunConfig,
  withFlags,
} from '../../config/configSchema.ts';
import { type LoadedConfig, loadConfig } from '../../config/loadConfig.ts';
import { at, isTree, leaves, type Tree } from '../../config/merge.ts';
import { CONFIGURED_KEY } from '../../config/miniSweAgent.ts';
import { ConfigError } from '../../config/readConfig.ts';
import type { SuiteConfig } from '../../config/suiteConfig.ts';
import type { ImagesConfig } from '../../environment/places/imagesConfig.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { takeCredentialsOut } from '../../model/namedCredentials.ts';
import { settleModel } from '../../model/settleModel.ts';
import { withVersion } from '../agents/armAgent.ts';
import { withEquipment } from '../agents/equipment.ts';
import type { Caller, Variables } from '../caller.ts';
import { UserError } from '../userError.ts';
import type { ArmConfig } from './planRecord.ts';

/** The options of `startRun` and `planRun`. */
export interface RunOptions {
  /** Results root; made when it is not there. */
  readonly results: string;
  /** Name of the run: that of an earlier one goes on with it. Default: a new one from the time. */
  readonly name?: string | undefined;
  /** Which rows: over the configuration's `dataset:` section. */
  readonly dataset?: DatasetConfig | undefined;
  /** Folder with local copies of the named datasets. */
  readonly dataDir?: string | undefined;
  /** Only instances that this run of the results root, or RUN/ARM, did not resolve; without a dataset, of that run's. */
  readonly failedIn?: string | undefined;
  /** Model ids, `scripted:PATH` or `replay:RUN[/ARM]`; several make arms. */
  readonly models?: readonly string[] | undefined;
  /** Configuration files and `key.path=value`, left to right. */
  readonly config?: readonly string[] | undefined;
  /** Sections as in a configuration file, over all of `config`. */
  readonly settings?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
  /** Go on with a changed configuration; recorded as a boundary. */
  readonly allowConfigChange?: boolean | undefined;
  /** Run sealed trials once more; all attempts are kept. */
  readonly redoExisting?: boolean | undefined;
}

/** A complete configuration, ready to be planned, checked and recorded. */
export interface ResolvedConfig {
  readonly arms: readonly ArmConfig[];
  readonly run: RunConfig;
  readonly grading: GradingConfig;
  readonly images: ImagesConfig;
  readonly dataset: DatasetConfig;
  /** Absent where nothing was said. */
  readonly suite?: SuiteConfig | undefined;
  readonly hash: string;
  /** Keys that stood in the configuration, under the variable that stands for them. */
  readonly keys: Variables;
  readonly warnings: readonly string[];
  /** The variable that an arm's address was taken from, by the name of the arm. */
  readonly addressFrom: Readonly<Record<string, string>>;
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
  /** Dotted path to the file or the words of the command line that set it. */
  readonly origins: LoadedConfig['origins'];
  /** The file that replaces the default configuration; null where the default lies under everything. */
  readonly replacedBy: string | null;
  /** Templates of the prompt that nothing names, by the name of the arm. */
  readonly unwritten: LoadedConfig['unwritten'];
}

type Asked = Pick<RunOptions, 'config' | 'models' | 'settings' | 'dataset'>;

/** `env` names keys and addresses of providers. Throws a UserError with every problem. */
export function resolveConfig(
  { models = [], ...asked }: Asked,
  { cwd, env }: Pick<Caller, 'cwd' | 'env'>,
): ResolvedConfig {
  const settings = given({
    ...asked.settings,
    ...(models.length === 1 && { model: { model_name: models[0], ...asked.settings?.model } }),
    ...(models.length > 1 && { arms: models.map((model_name) => ({ model: { model_name } })) }),
  });
  const loaded = loadLayers(asked.config ?? [], settings, cwd);
  const { config } = loaded;
  const open = withoutCredentials(loaded.arms);
  const settledArms = settled(open.arms.map(withoutModel), env);
  const { warnings, addressFrom } = settledArms;
  const suite = config.suite && settledSuite(config.suite, env);
  const arms = settledArms.arms.map((arm) => withEquipment(arm, cwd));
  return {
    arms,
    run: config.run,
    grading: config.grading,
    images: config.images,
    dataset: withFlags(config.dataset, asked.dataset ?? {}),
    suite: suite?.config,
    // An arm is all that `arms:` said about it: two ways to write the same arms are the same experiment.
    hash: sha256(
      arms
        .map((arm) => `${arm.name} ${configHash({ ...config, ...arm, suite: suite?.config, arms: [] })}`)
        .join('\n'),
    ),
    keys: {
      ...open.keys,
      ...suite?.keys,
      ...(loaded.apiKey !== undefined && { [CONFIGURED_KEY]: loaded.apiKey }),
    },
    warnings: [...loaded.warnings, ...open.warnings, ...warnings],
    addressFrom,
    files: loaded.files,
    origins: loaded.origins,
    replacedBy: loaded.replacedBy,
    unwritten: loaded.unwritten,
  };
}

/** The record of a run holds no credential: each is taken out, and a reference stands in its place. */
function withoutCredentials(given: readonly ArmConfig[]) {
  const taken = given.map(({ model }, k) =>
    takeCredentialsOut(model.model_kwargs, k === 0 ? '' : `_${k + 1}`),
  );
  const arms = given.map((arm, k) => {
    const { kwargs, keys } = taken[k]!;
    return Object.keys(keys).length === 0 ? arm : { ...arm, model: { ...arm.model, model_kwargs: kwargs } };
  });
  const paths = taken.flatMap((one) => Object.entries(one.paths));
  return {
    arms,
    keys: Object.fromEntries(taken.flatMap((one) => Object.entries(one.keys))),
    warnings: paths.map(
      ([name, path]) =>
        `model.model_kwargs.${path}: a key is better kept in an environment variable (write env:NAME there); it is not recorded, so to resume the run set $${name}`,
    ),
  };
}

/** The judge gets address and key by its name, as an arm's model; no credential is recorded. The checks tell of a judge that cannot be settled. */
function settledSuite(given: SuiteConfig, env: Variables): { config: SuiteConfig; keys: Variables } {
  const { judge } = given;
  if (!judge) return { config: given, keys: {} };
  const { kwargs, keys } = takeCredentialsOut(judge.model_kwargs, '_JUDGE');
  const named = { ...judge, model_kwargs: kwargs };
  const answer = settleModel(named, { env, litellm: false });
  return { config: { ...given, judge: answer.ok ? answer.model : named }, keys };
}

/** An agent that asks no model needs none. */
function withoutModel(arm: ArmConfig): ArmConfig {
  const predictsAs = nameWithoutModel(arm.agent.agent_class);
  if (predictsAs === undefined) return arm;
  return { ...arm, predictsAs, model: { ...arm.model, model_name: `none:${predictsAs}` } };
}

/** A model that cannot be settled stays unchanged: the checks of the arm report it, and a dry run shows it. */
function settled(
  given: readonly ArmConfig[],
  env: Variables,
): Pick<ResolvedConfig, 'addressFrom' | 'warnings'> & { arms: ArmConfig[] } {
  const answers = given.map((arm) => settleModel(arm.model, { env, litellm: arm.agent.compat !== null }));
  const arms = given.map((arm, k) => {
    const answer = answers[k]!;
    return withVersion(answer.ok ? { ...arm, model: answer.model } : arm, env);
  });
  return {
    arms,
    addressFrom: Object.fromEntries(
      given.flatMap(({ name }, k) => {
        const answer = answers[k]!;
        return answer.ok && answer.addressFrom !== undefined ? [[name, answer.addressFrom]] : [];
      }),
    ),
    warnings: [...new Set(answers.flatMap((answer) => (answer.ok ? (answer.warnings ?? []) : [])))],
  };
}

/** Drops undefined values and empty sections, so that they override nothing. */
const given = (values: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values)
      .map(([key, value]) => [key, isRecord(value) ? given(value) : value] as const)
      .filter(([, value]) => value !== undefined && !(isRecord(value) && Object.keys(value).length === 0)),
  );

/**
 * The layers of `-c` lie over the default, so that a file of prices says the same as `-c model.prices…`. A file that brings an agent of its own
 * replaces the default, as in mini-swe-agent. Throws a UserError with every problem.
 */
export function loadLayers(
  specs: readonly string[],
  overrides: Record<string, unknown>,
  cwd: string,
): LoadedConfig {
  const texts = new Map<string, string | null>();
  // Standard input can be read once.
  const read = (path: string) => {
    if (!texts.has(path)) texts.set(path, readFile(path));
    return texts.get(path)!;
  };
  const over = (base: string) => loadConfig({ specs, base, overrides, cwd, readFile: read });
  try {
    const loaded = over('default');
    // The prompt of default.yaml asks for blocks; its counterpart asks for tool calls.
    const calls = loaded.replacedBy === null && loaded.config.agent.protocol === 'tool-call';
    return calls ? over('swebench') : loaded;
  } catch (error) {
    if (error instanceof ConfigError) throw new UserError(error.message);
    throw error;
  }
}

function readFile(path: string): string | null {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'EISDIR', 'ENOTDIR'].includes((error as { code?: string }).code ?? '')) return null;
    throw new UserError(`-c: ${path} cannot be read: ${fileErrorText(error)}`);
  }
}

/** A resolved configuration as rows: each value with where it came from. */
export interface ConfigRow {
  /** Dotted, as `-c` takes it; of several arms `NAME: agent.…` where they differ. */
  readonly path: string;
  readonly value: unknown;
  /** A file, `-c key=value`, `command line`, `arms`, `default`, or `derived` from other values. */
  readonly from: string;
}

export function configRows(resolved: ResolvedConfig): ConfigRow[] {
  const { arms, run, grading, images, dataset, suite, origins } = resolved;
  const defaults = configSchema.parse({}) as Tree;
  const [first, ...others] = arms.map(({ name: _, ...sections }) => plain(sections));
  const shared = { ...first, ...plain({ run, grading, images, dataset, suite }) };
  const row = (tree: Tree, path: string, name = ''): ConfigRow => {
    const value = at(tree, path.split('.'));
    const from = name === '' ? origin(path, value, origins, defaults) : 'arms';
    return { path: name === '' ? path : `${name}: ${path}`, value, from };
  };
  const differs = (path: string) =>
    others.some((other) => !same(at(other, path.split('.')), at(first!, path.split('.'))));
  const differing = new Set([first!, ...others].flatMap((arm) => leaves(arm)).filter(differs));
  return [
    ...leaves(shared).flatMap((path) => (differing.has(path) ? [] : row(shared, path))),
    ...arms.flatMap((arm, k) =>
      [...differing].flatMap((path) => {
        const tree = [first!, ...others][k]!;
        return at(tree, path.split('.')) === undefined ? [] : row(tree, path, arm.name);
      }),
    ),
  ];
}

function origin(path: string, value: unknown, origins: ResolvedConfig['origins'], defaults: Tree): string {
  const set = origins[path] ?? origins[Object.keys(origins).find((key) => path.startsWith(`${key}.`)) ?? ''];
  if (set !== undefined) return set;
  return same(value, at(defaults, path.split('.'))) ? 'default' : 'derived';
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The object without what is undefined. */
const plain = (value: object): Tree => {
  const tree: unknown = JSON.parse(JSON.stringify(value));
  return isTree(tree) ? tree : {};
};
