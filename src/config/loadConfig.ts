/**
 * Loads `-c` files, key=value and flags into one checked configuration, with the origin of each value. Finds all problems before it throws.
 * The only side effect is `readFile`.
 */

import type { z } from 'zod';
import { type AgentConfig, TOOL_CALL_INSTANCE_TEMPLATE } from '../agent/agentConfig.ts';
import { nameWithoutModel } from '../agent/agents.ts';
import type { GatewayConfig } from '../agent/gateway/gatewayConfig.ts';
import { publishedOpening } from '../agent/loop/protocol.ts';
import { TEMPLATE_SLOTS } from '../agent/loop/templates.ts';
import { sampleContexts } from '../agent/templateContext.ts';
import { ownEntry } from '../base/isRecord.ts';
import { LONGEST_PATTERN, linearProblem } from '../base/regex/linearRegex.ts';
import { sha256 } from '../base/sha256.ts';
import { closest } from '../base/text/closest.ts';
import { issueText } from '../base/text/errorText.ts';
import { visibleName } from '../base/text/inert.ts';
import { parseDuration } from '../base/text/units.ts';
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import { environmentKindOf } from '../environment/environments.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import { checkTemplate, compileTemplate, render } from '../template/render.ts';
import { allPaths, type Config, configSchema, isNumberAt, keysAt } from './configSchema.ts';
import { at, isTree, leaves, merge, nest, type Tree } from './merge.ts';
import { applyCompat, inTextWhereMatched, mapMiniSweAgent, recognise } from './miniSweAgent.ts';
import { ConfigError, findConfig, isKeyValue, parseKeyValue, type ReadFile, readYaml } from './readConfig.ts';

interface LoadRequest {
  /** Values of `-c`, left to right: file names, `a.b=value`, or `-` for standard input. */
  readonly specs: readonly string[];
  /** The configuration that these are laid over, unless one of their files brings an agent of its own. */
  readonly base?: string;
  /** Values of flags, over everything else; undefined values are ignored. */
  readonly overrides?: Tree;
  /** Text of a path, null where there is no file; `-` is standard input. */
  readonly readFile: ReadFile;
  readonly cwd: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** At least one arm; its sections are merged, and checked like the whole. */
  readonly arms: readonly Arm[];
  /** Dotted path to the file, `-c key=value` or `command line` that set it; what is missing is a default. */
  readonly origins: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
  /** An API key from the configuration; no other field has it. */
  readonly apiKey?: string;
  /** The file of `specs` that replaces the base, because it brings an agent of its own; null where the base lies under them. */
  readonly replacedBy: string | null;
  /** Templates of the prompt that nothing names, by the name of the arm. The published agent of `compat` brings its own. */
  readonly unwritten: Readonly<Record<string, readonly string[]>>;
}

interface Layer {
  /** A person named it as a file. */
  readonly file?: true;
  /** Nobody named it: named layers are laid over it. */
  readonly base?: true;
  readonly from: string;
  readonly tree: Tree;
}

/** Throws ConfigError with every problem. */
export function loadConfig(request: LoadRequest): LoadedConfig {
  const { layers, files, replacedBy } = readLayers(request);
  const warnings: string[] = [];
  const problems: string[] = [];
  const origins: Record<string, string> = {};
  let tiers: Tiers = { below: {}, ofClass: {}, given: {} };
  let prompt: WrittenPrompt | null = null;
  let apiKey: string | undefined;
  const unrecognised: string[] = [];
  const compat = layers.some((layer) => at(layer.tree, ['agent', 'compat']) !== undefined);
  for (const layer of layers) {
    const mapped = mapMiniSweAgent(layer.tree, layer.from);
    warnings.push(...mapped.warnings);
    problems.push(...mapped.problems);
    tiers = over(tiers, mapped, layer.base);
    apiKey = mapped.key ?? apiKey;
    if (!compat) {
      const recognised = recognise(layer.tree, layer.from, merged(tiers));
      tiers = { ...tiers, below: merge(recognised.tree, tiers.below) };
      warnings.push(...recognised.warnings);
      unrecognised.push(...recognised.problems);
    }
    prompt = promptAfter(prompt, { from: layer.from, tree: mapped.tree }, merged(tiers));
    for (const path of leaves(mapped.tree)) origins[path] = layer.from;
    for (const path of leaves(mapped.defaults ?? {}))
      if (at(tiers.given, path.split('.')) === undefined) origins[path] = layer.from;
  }
  const tree = merged(tiers);
  if (at(tree, ['agent', 'protocol']) === undefined) problems.push(...unrecognised);
  const checked = checkTree(tree);
  warnings.push(...checked.warnings, ...promptWarnings('', prompt, tree));
  problems.push(...checked.problems.map((problem) => withFile(problem, origins, files)));
  if (!checked.config) throw new ConfigError(problems);
  const flags = layers.at(-1)!.tree;
  const arms = resolveArms(checked.config, tiers, prompt, mapMiniSweAgent(flags, ''));
  problems.push(...arms.problems);
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return {
    config: checked.config,
    arms: arms.arms,
    origins,
    warnings: [...new Set([...warnings, ...arms.warnings])],
    files,
    replacedBy,
    unwritten: arms.unwritten,
    ...(apiKey !== undefined && { apiKey }),
  };
}

/** Three configurations, the later over the earlier: a default of a class never beats a value that was given. */
interface Tiers {
  /** The configuration that all are laid over, and what is inferred from a prompt. */
  readonly below: Tree;
  /** Defaults of the class of the model. */
  readonly ofClass: Tree;
  readonly given: Tree;
}

const over = (
  tiers: Tiers,
  { tree, defaults }: { readonly tree: Tree; readonly defaults?: Tree },
  base = false,
): Tiers => ({
  below: base ? merge(tiers.below, tree) : tiers.below,
  ofClass: defaults ?? tiers.ofClass,
  given: base ? tiers.given : merge(tiers.given, tree),
});
const merged = ({ below, ofClass, given }: Tiers): Tree =>
  merge(merge(below, inTextWhereMatched(ofClass, given)), given);

/** Adds the file that says so, where one does: a `-c key=value` is on the screen. */
function withFile(problem: string, origins: LoadedConfig['origins'], files: LoadedConfig['files']): string {
  const key = problem.split(':')[0] as string;
  const leaf = Object.keys(origins).find((path) => path === key || path.startsWith(`${key}.`));
  const from = leaf && files.find(({ path }) => path === origins[leaf]);
  return from ? `${problem} (in ${from.path})` : problem;
}

/** The spec as written, without the value of an API key, because messages and the record show it. */
const shown = (spec: string): string =>
  spec.includes('api_key') && !spec.startsWith('model.api_key_env=') ? `${spec.split('=')[0]}=…` : spec;

function readLayers(request: LoadRequest) {
  const files: { path: string; sha256: string }[] = [];
  const fileLayer = (spec: string): Layer => {
    const { path, text } =
      spec === '-'
        ? { path: 'standard input', text: request.readFile('-') ?? '' }
        : findConfig(spec, request.cwd, request.readFile);
    files.push({ path, sha256: sha256(text) });
    return { from: path, tree: sectionsOf(text, path), file: true };
  };
  const named = request.specs.map((spec) =>
    isKeyValue(spec) ? { from: `-c ${shown(spec)}`, tree: parseKeyValue(spec) } : fileLayer(spec),
  );
  const replacedBy = named.find((layer) => 'file' in layer && bringsAgent(layer.tree))?.from ?? null;
  const base =
    request.base !== undefined && replacedBy === null
      ? [{ ...fileLayer(request.base), base: true as const }]
      : [];
  const flags: Layer = { from: 'command line', tree: request.overrides ?? {} };
  const layers: Layer[] = [...base, ...named, flags];
  return { layers, files, replacedBy };
}

/** A layer that names a prompt or a published agent: limits and environment of another configuration would not belong to it. */
function bringsAgent(tree: Tree): boolean {
  const { arms } = tree;
  const sections = [tree, ...(Array.isArray(arms) ? arms.filter(isTree) : [])];
  const own = [...PROMPT_TEMPLATES, 'compat'];
  return sections.some((section) => own.some((key) => at(section, ['agent', key]) !== undefined));
}

/** The sections of a file. */
function sectionsOf(text: string, path: string): Tree {
  const value = readYaml(text, path) ?? {};
  if (!isTree(value))
    throw new ConfigError([`${path}: expected sections such as agent:, environment:, model:`]);
  const unseen = unseenKeys(value, '');
  if (unseen.length > 0)
    throw new ConfigError(
      unseen.map((key) => `${path}: ${key}: this key has a character that nobody sees; write it without`),
    );
  return Object.fromEntries(
    Object.entries(value)
      // `x-limits: &limits {…}` is a place for what is used elsewhere in the file, as in compose files.
      .filter(([key]) => !key.startsWith('x-'))
      // `model:` with nothing below it is an empty section.
      .map(([key, section]) => [key, section === null && keysAt([key]).length > 0 ? {} : section]),
  );
}

/** Keys with characters that a display takes out: beside the key without them they would be two of one name. */
function unseenKeys(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((one, at) => unseenKeys(one, `${path}${at}.`));
  if (!isTree(value)) return [];
  return Object.entries(value).flatMap(([key, below]) => {
    const shownKey = visibleName(key);
    return [...(shownKey === key ? [] : [`${path}${shownKey}`]), ...unseenKeys(below, `${path}${shownKey}.`)];
  });
}

/** One merged tree to a configuration: aliases, compat, schema, regex, templates. */
function checkTree(given: Tree): Checked {
  const compat = applyCompat(noneIsOff(given));
  const parsed = configSchema.safeParse(promptOfProtocol(compat.tree));
  const problems = [...compat.problems];
  if (!parsed.success) {
    problems.push(...parsed.error.issues.flatMap((issue) => problemsOf(issue, compat.tree)));
    return { config: null, warnings: compat.warnings, problems };
  }
  const config = parsed.data;
  const regex = translateActionRegex(config.agent.action_regex);
  if ('problem' in regex) problems.push(`agent.action_regex: ${regex.problem}`);
  else config.agent.action_regex = regex.regex;
  problems.push(
    ...templateProblems(config.agent),
    ...startupCommandProblems(config.environment.startup_command),
    ...lifetimeProblems(config),
  );
  return { config, warnings: [...compat.warnings, ...dropImageStartup(config)], problems };
}

/** A container must not end before the agent's time limit. */
function lifetimeProblems({ agent, environment }: Config): string[] {
  const lifetime = parseDuration(environment.container_timeout);
  const wall = agent.wall_time_limit_seconds;
  if (lifetime === 0 || wall === 0 || lifetime >= wall) return [];
  return [
    `environment.container_timeout (${environment.container_timeout}) is shorter than agent.wall_time_limit_seconds (${wall} s): raise it, or set it to 0 for no limit`,
  ];
}

/**
 * In images of SWE-bench, BASH_ENV names the file that activates their environment. On this machine the same path is a person's own file,
 * and one that runs bash would call itself without end.
 */
const IMAGE_STARTUP = '/root/.bashrc';
function dropImageStartup({ environment }: Config): string[] {
  if (!environmentKindOf(environment).onThisMachine || environment.env.BASH_ENV !== IMAGE_STARTUP) return [];
  delete environment.env.BASH_ENV;
  return [
    `environment.env.BASH_ENV: ${IMAGE_STARTUP} is a file of images; not used where commands run on this machine`,
  ];
}

/** `none` means 0 wherever a number is expected. */
function noneIsOff(tree: Tree): Tree {
  let out = tree;
  for (const path of leaves(tree)) {
    const keys = path.split('.');
    if (at(tree, keys) === 'none' && isNumberAt(keys)) out = merge(out, nest(keys, 0));
  }
  return out;
}

function problemsOf(issue: z.core.$ZodIssue, tree: Tree): string[] {
  const path = issue.path.map(String);
  const where = path.join('.') || 'the configuration';
  if (issue.code !== 'unrecognized_keys') {
    const value = at(tree, path);
    return [`${where}: ${issueText(issue)}${value === undefined ? '' : ` (it is ${JSON.stringify(value)})`}`];
  }
  return issue.keys.map((key) => {
    if (key.startsWith('//')) return `${key}: a comment begins with #, in JSON too`;
    const close = suggest(key, keysAt(path));
    const elsewhere = close ? null : allPaths().find((other) => other.split('.').at(-1) === key);
    const hint = close ?? elsewhere;
    const name = [...path, key].join('.');
    return `${name}: there is no such key${hint ? `; did you mean ${close ? [...path, close].join('.') : hint}?` : ''}`;
  });
}

/** Words that other tools use for the same thing. */
const SYNONYMS: Readonly<Record<string, string>> = {
  max_iterations: 'step_limit',
  max_steps: 'step_limit',
  max_turns: 'step_limit',
  max_cost: 'cost_limit',
  budget: 'cost_limit',
  time_limit: 'wall_time_limit_seconds',
  name: 'model_name',
  api_base: 'base_url',
  api_key: 'api_key_env',
  num_workers: 'workers',
  temperature: 'model_kwargs',
  max_tokens: 'model_kwargs',
  working_dir: 'cwd',
  prompt: 'instance_template',
  // Former keys: `grading.dialect`, `images.attempts`.
  dialect: 'harness',
  attempts: 'tries',
};

/** The known name that a misspelt one most likely means. */
function suggest(name: string, known: readonly string[]): string | null {
  const synonym = ownEntry(SYNONYMS, name);
  if (synonym && known.includes(synonym)) return synonym;
  return closest(name, known);
}

/** Checks the names in every template that was given and renders it, before anything is started or paid. Tests check the defaults. */
function templateProblems(config: AgentConfig): string[] {
  const { prompt_template: prompt, command } = config;
  return [
    ...TEMPLATE_SLOTS.flatMap((slot) =>
      problemsWith(`agent.${slot}_template`, config[`${slot}_template`], () => sampleContexts(slot, config)),
    ),
    ...problemsWith('agent.prompt_template', prompt, () => sampleContexts('instance', config)),
    ...problemsWith('agent.command', command, () => [
      {
        ...{ task: 'task text', prompt_file: '/prompt', model: 'model', skills: '/skills' },
        ...{ instructions: '/instructions', steps_left: 9, deadline: '2026-01-01T00:00:00.000Z' },
      },
    ]),
  ];
}

function problemsWith(
  key: string,
  template: string | undefined,
  samples: () => readonly Record<string, unknown>[],
): string[] {
  if (template === undefined) return [];
  const contexts = samples();
  const names = new Set(contexts.flatMap((context) => Object.keys(context)));
  const problems = checkTemplate(template, names);
  if (problems.length > 0) return problems.map((problem) => `${key}: ${problem}`);
  try {
    for (const context of contexts) render(template, context);
    return [];
  } catch (error) {
    return [`${key}: ${(error as Error).message}`];
  }
}

/** Checks only the syntax: its names are columns of the dataset, which are not known yet. */
function startupCommandProblems(command: string | undefined): string[] {
  if (command === undefined) return [];
  try {
    compileTemplate(command);
    return [];
  } catch (error) {
    return [`environment.startup_command: ${(error as Error).message}`];
  }
}

const PYTHON_ONLY: readonly (readonly [RegExp, string])[] = [
  [/\(\?P=/, 'a named back reference (?P=name)'],
  [/\(\?\(/, 'a conditional group (?(...)...)'],
  [/\(\?s*[aiLmux][aiLmsux]*[-:)]/, 'an inline flag other than (?s)'],
  [/\(\?>/, 'an atomic group'],
];

/** Translates agent.action_regex from Python's re (with DOTALL) to JavaScript; refuses what has no translation or no linear-time match. */
export function translateActionRegex(
  pattern: string,
): { readonly regex: string } | { readonly problem: string } {
  if (pattern.length > LONGEST_PATTERN) return { problem: `it has more than ${LONGEST_PATTERN} characters` };
  // DOTALL is always on.
  const text = pattern.replace(/^\(\?s\)/, '');
  for (const [found, what] of PYTHON_ONLY)
    if (found.test(text))
      return { problem: `${what} cannot be used; write it as a JavaScript regular expression` };
  const regex = text
    .replace(/\(\?P</g, '(?<')
    .replace(/(^|[^\\])((?:\\\\)*)\\Z/g, '$1$2(?![\\s\\S])')
    .replace(/(^|[^\\])((?:\\\\)*)\\A/g, '$1$2(?<![\\s\\S])');
  let groups: number;
  try {
    groups = (new RegExp(`${regex}|`, 's').exec('')?.length ?? 1) - 1;
  } catch (error) {
    return { problem: `it is not a regular expression: ${(error as Error).message}` };
  }
  if (groups > 1)
    return { problem: `it has ${groups} capture groups; exactly one, around the command, is needed` };
  const problem = publishedOpening(regex) === undefined ? linearProblem(regex, 's') : null;
  return problem === null ? { regex } : { problem: `it ${problem}` };
}

interface Arm {
  readonly name: string;
  readonly agent: AgentConfig;
  readonly environment: EnvironmentConfig;
  readonly model: ModelConfig;
  readonly gateway?: GatewayConfig;
}

/** A tree that was read as a configuration; null where it is none. */
interface Checked {
  readonly config: Config | null;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}

/**
 * `arms:` of a configuration: each is the configuration with its own sections merged over, and the flags over every arm. Without any there is one.
 */
function resolveArms(
  config: Config,
  tiers: Tiers,
  prompt: WrittenPrompt | null,
  flags: ReturnType<typeof mapMiniSweAgent>,
) {
  const problems: string[] = [];
  const warnings: string[] = [];
  const arms: Arm[] = config.arms.length === 0 ? [armOf(armNameOf(config), config)] : [];
  const unwritten = Object.fromEntries(arms.map(({ name }) => [name, unwrittenIn(merged(tiers))]));
  for (const [i, { name, ...sections }] of config.arms.entries()) {
    const from = `arms[${i}]`;
    const mapped = mapMiniSweAgent(sections as Tree, from);
    const { arms: _, ...tree } = merged(over(over(tiers, mapped), flags));
    const checked = checkTree(tree);
    problems.push(...mapped.problems, ...checked.problems.map((p) => `${from}: ${p}`));
    warnings.push(
      ...mapped.warnings,
      ...checked.warnings,
      ...promptWarnings(`${from}: `, promptAfter(prompt, { from, tree: mapped.tree }, tree), tree),
    );
    if (!checked.config) continue;
    const arm = armOf(name ?? freeName(checked.config, arms), checked.config);
    if (arms.some((other) => other.name === arm.name))
      problems.push(`${from}: the name "${arm.name}" is taken by another arm; give each its own name`);
    arms.push(arm);
    unwritten[arm.name] = unwrittenIn(tree);
  }
  return { arms, unwritten, problems, warnings };
}

/** The model's name as a valid folder name; the agent's where it asks no model. */
export function armNameOf({ model, agent }: Pick<Config, 'model' | 'agent'>): string {
  const without = nameWithoutModel(agent.agent_class) === undefined ? 'default' : agent.agent_class;
  return (model.model_name ?? without).replace(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 64);
}

/** Two agents with one model: the second is named after its agent too. */
function freeName(config: Config, arms: readonly Arm[]): string {
  const ofModel = armNameOf(config);
  const other = arms.find(({ name }) => name === ofModel);
  const agentIn = ({ agent_class, program }: Config['agent']) => program ?? agent_class;
  if (!other || agentIn(other.agent) === agentIn(config.agent)) return ofModel;
  return `${agentIn(config.agent)}_${ofModel}`.replace(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 64);
}

const armOf = (name: string, config: Config): Arm => ({
  name,
  agent: config.agent,
  environment: config.environment,
  model: config.model,
  ...(config.gateway && { gateway: config.gateway }),
});

// A prompt asks for blocks or for tool calls. The default prompt follows the protocol; a custom one that does not fit gets a warning.

const PROMPT_TEMPLATES = ['system_template', 'instance_template'];
const PROMPT = ['agent', 'instance_template'];
const protocolOf = (tree: Tree): unknown => at(tree, ['agent', 'protocol']) ?? 'bash-block';

const promptOfProtocol = (tree: Tree): Tree =>
  protocolOf(tree) === 'tool-call' && at(tree, PROMPT) === undefined
    ? merge({ agent: { instance_template: TOOL_CALL_INSTANCE_TEMPLATE } }, tree)
    : tree;

/** The code of mini-swe-agent 1 has both; that of version 2 has none. */
const unwrittenIn = (tree: Tree): string[] =>
  at(tree, ['agent', 'compat']) === 'mini-swe-agent-1'
    ? []
    : PROMPT_TEMPLATES.filter((key) => at(tree, ['agent', key]) === undefined);

/** The layer that set the prompt, and the protocol at that point. */
interface WrittenPrompt {
  readonly from: string;
  readonly protocol: unknown;
}

/** The prompt of this layer, or else that of the layers before. */
const promptAfter = (
  before: WrittenPrompt | null,
  layer: { readonly from: string; readonly tree: Tree },
  merged: Tree,
): WrittenPrompt | null =>
  at(layer.tree, PROMPT) === undefined ? before : { from: layer.from, protocol: protocolOf(merged) };

/** No warning under compat, where the protocol is known only at the end. */
function promptWarnings(where: string, prompt: WrittenPrompt | null, tree: Tree): string[] {
  const protocol = protocolOf(tree);
  if (prompt === null || prompt.protocol === protocol || at(tree, ['agent', 'compat'])) return [];
  return [
    `${where}agent.protocol: ${protocol}, but agent.instance_template (${prompt.from}) was written for ${prompt.protocol}; set the template too, or use ${protocol === 'tool-call' ? '-c swebench.yaml' : '-c default.yaml or swebench-text.yaml'}`,
  ];
}
