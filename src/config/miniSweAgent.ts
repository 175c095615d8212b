/**
 * Keys of mini-swe-agent's configurations (1.17.5 and 2.4.6) that this program does not have: mapped, accepted with a warning, or refused
 * with a reason.
 */

import { DEFAULT_ENVIRONMENT, environmentNames } from '../environment/environments.ts';
import { OPENAI, PROVIDERS } from '../model/names.ts';
import { at, isTree, merge, nest, type Rewritten, type Tree, without } from './merge.ts';

interface Mapped extends Rewritten {
  /** Defaults of a class of mini-swe-agent. Absent where this layer names no class. */
  readonly defaults?: Tree;
  /** An API key from the configuration, kept out of the tree so that no record has it. */
  readonly key?: string;
}

type Answer =
  | { readonly set: Tree; readonly defaults?: Tree; readonly warning?: string; readonly key?: string }
  | { readonly warning: string }
  | { readonly problem: string }
  | 'drop'
  | 'keep';
type Rule = (value: unknown, tree: Tree) => Answer;

const moveTo =
  (...path: string[]): Rule =>
  (value) => ({ set: nest(path, value) });
const refuse =
  (reason: string): Rule =>
  () => ({ problem: reason });
const ignored =
  (reason: string): Rule =>
  () => ({ warning: reason });
const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);
const refuseUnlessEmpty =
  (reason: string): Rule =>
  (value) =>
    isEmpty(value) ? 'drop' : { problem: reason };

/** The default regex of version 2's text-based classes. */
const V2_ACTION_REGEX = '```mswea_bash_command\\s*\\n([\\s\\S]*?)\\n```';

/** Defaults of mini-swe-agent's model classes: protocol, and address and key of their service. */
const calls = (model: Tree = {}): Tree => ({ agent: { protocol: 'tool-call' }, model });
const blocks = (model: Tree = {}): Tree => ({
  agent: { protocol: 'bash-block', action_regex: V2_ACTION_REGEX },
  model,
});
const OPENROUTER = { base_url: 'https://openrouter.ai/api/v1', api_key_env: 'OPENROUTER_API_KEY' };
const PORTKEY = { base_url: 'https://api.portkey.ai/v1', api_key_env: 'PORTKEY_API_KEY' };
const REQUESTY = { base_url: 'https://router.requesty.ai/v1', api_key_env: 'REQUESTY_API_KEY' };
const RESPONSES: Tree = { dialect: 'responses' };
const MODEL_CLASSES: Readonly<Record<string, Tree>> = {
  litellm: calls(),
  litellm_textbased: blocks(),
  litellm_response: calls(RESPONSES),
  anthropic: calls(),
  openrouter: calls(OPENROUTER),
  openrouter_textbased: blocks(OPENROUTER),
  openrouter_response: calls({ ...OPENROUTER, ...RESPONSES }),
  portkey: calls(PORTKEY),
  portkey_response: calls({ ...PORTKEY, ...RESPONSES }),
  requesty: calls(REQUESTY),
};

const ENVIRONMENT_CLASSES: Readonly<Record<string, string>> = Object.fromEntries(
  ['singularity', 'bubblewrap', 'contree'].map((name) => [
    name,
    `"${name}" environments are not supported; use ${environmentNames().join(', ')}, or the path of your own module`,
  ]),
);

/** Classes that run the same images elsewhere or through another program, with the same effect for commands. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  swerex_docker: 'containers are run by swebatch itself on the Docker engine',
  swerex_modal: 'swebatch does not run on Modal: containers of the Docker engine are used',
};
const MODAL_ONLY = [
  'startup_timeout',
  'runtime_timeout',
  'deployment_timeout',
  'install_pipx',
  'modal_sandbox_kwargs',
];

const interactive = refuse('only the interactive agent has this setting');

const RULES: Readonly<Record<string, Rule>> = {
  'agent.action_observation_template': moveTo('agent', 'observation_template'),
  'agent.output_path': ignored('every step is recorded in the database; the path is not used'),
  'agent.mode': ignored('a batch has no person to ask: every command runs'),
  'agent.whitelist_actions': interactive,
  'agent.confirm_exit': interactive,
  'environment.executable': (value) =>
    value === 'docker' ? 'drop' : { problem: `only the Docker engine is supported, not "${value}"` },
  'environment.run_args': mapRunArgs,
  'environment.forward_env': refuseUnlessEmpty(
    'nothing of this machine is forwarded into a container, so that no secret can get there; set environment.env with plain values',
  ),
  'environment.environment_class': (value) => {
    const reason = ENVIRONMENT_CLASSES[String(value)];
    if (reason) return { problem: reason };
    const instead = ELSEWHERE[String(value)];
    return instead
      ? { set: { environment: { environment_class: DEFAULT_ENVIRONMENT } }, warning: instead }
      : 'keep';
  },
  ...Object.fromEntries(
    MODAL_ONLY.map((key) => [`environment.${key}`, ignored('it is a setting of Modal')] as const),
  ),
  'model.observation_template': moveTo('agent', 'observation_template'),
  'model.format_error_template': moveTo('agent', 'format_error_template'),
  'model.action_regex': moveTo('agent', 'action_regex'),
  'model.multimodal_regex': refuseUnlessEmpty('multimodal content in text is not supported'),
  'model.litellm_model_registry': refuseUnlessEmpty(
    'put the prices under model.prices (dollars per million tokens)',
  ),
  'model.litellm_model_name_override': refuseUnlessEmpty('put the prices under model.prices'),
  'model.model_class': (value) => modelClass(String(value)),
  'model.model_kwargs': modelKwargs,
  'model.provider': (value) => ({
    set: { model: { model_kwargs: { extra_headers: { 'x-portkey-provider': value } } } },
  }),
  'run.env_startup_command': moveTo('environment', 'startup_command'),
};

function modelClass(name: string): Answer {
  const short = /^minisweagent\.models\.(?:\w+\.)*(\w+?)(?:_model)?\.\w+$/.exec(name)?.[1] ?? name;
  if (short === 'deterministic') return { problem: 'use --model scripted:PATH instead' };
  const defaults = Object.hasOwn(MODEL_CLASSES, short) ? MODEL_CLASSES[short] : undefined;
  if (defaults) return { set: { model: { model_class: 'openai' } }, defaults };
  return name.startsWith('minisweagent.')
    ? { problem: `"${name}" is a Python class; use openai, or the path of your own module` }
    : { set: { model: { model_class: name } }, defaults: {} };
}

/** A regex for commands in text does not fit a class that calls tools; mini-swe-agent ignored it silently. */
export const inTextWhereMatched = (defaults: Tree, given: Tree): Tree =>
  at(given, ['agent', 'action_regex']) === undefined || at(defaults, ['agent', 'protocol']) === undefined
    ? defaults
    : merge(defaults, { agent: { protocol: 'bash-block' } });

/** The variable that stands for an API key in the configuration. */
export const CONFIGURED_KEY = 'CONFIGURED_API_KEY';
const FROM_VARIABLE = /^os\.environ\/(\w+)$/;

/** Parameters for litellm itself, which an endpoint does not know: each becomes a setting here, or nothing. */
const LITELLM_ONLY: Readonly<Record<string, (value: unknown) => Answer>> = {
  drop_params: (value) =>
    value === true
      ? {
          set: { model: { drop_params: true } },
          warning: 'what the model is known to refuse is left out; the rest is sent as it is given',
        }
      : 'drop',
  api_base: (value) => ({ set: { model: { base_url: value } } }),
  base_url: (value) => ({ set: { model: { base_url: value } } }),
  api_key: (value) => {
    const variable = FROM_VARIABLE.exec(String(value))?.[1];
    if (variable) return { set: { model: { api_key_env: variable } } };
    return {
      set: { model: { api_key_env: CONFIGURED_KEY } },
      key: String(value),
      warning:
        'a key is better kept in an environment variable (model.api_key_env); it is not recorded, so to resume the run set $CONFIGURED_API_KEY',
    };
  },
  num_retries: (value) => ({ set: { model: { retry: { max_retries: Number(value) } } } }),
  timeout: (value) => {
    if (typeof value !== 'number' && !/^\d+(\.\d+)?$/.test(String(value)))
      return { problem: `"${String(value)}" is not a number of seconds` };
    return { set: { model: { total_timeout_s: Number(value) } } };
  },
  custom_llm_provider: (value) => {
    const known = PROVIDERS.find(({ prefix }) => prefix === value);
    if (known) return { set: { model: { dialect: known.dialect } } };
    // Services of others mostly speak the dialect of OpenAI's.
    const warning = `"${String(value)}" is not a known provider; chat completions are used unless model.dialect says otherwise`;
    return { set: {}, defaults: { model: { dialect: OPENAI.dialect } }, warning };
  },
};

function modelKwargs(value: unknown): Answer {
  if (Array.isArray(value))
    return { problem: 'a list of models is not supported; use arms, or one run for each' };
  if (!isTree(value)) return 'keep';
  const names = Object.keys(value).filter((key) => Object.hasOwn(LITELLM_ONLY, key));
  if (names.length === 0) return 'keep';
  const rest = Object.fromEntries(Object.entries(value).filter(([key]) => !names.includes(key)));
  let set: Tree = { model: { model_kwargs: rest } };
  let defaults: Tree | undefined;
  const notes: string[] = [];
  let key: string | undefined;
  for (const name of names) {
    const answer = LITELLM_ONLY[name]!(value[name]);
    if (typeof answer === 'string') continue;
    if ('problem' in answer) return { problem: `${name}: ${answer.problem}` };
    if (answer.warning) notes.push(`${name}: ${answer.warning}`);
    if (!('set' in answer)) continue;
    set = merge(set, answer.set);
    defaults = answer.defaults ?? defaults;
    key = answer.key ?? key;
  }
  return { set, warning: notes.join('; '), ...(key !== undefined && { key }), ...(defaults && { defaults }) };
}

/** Rewrites one layer at a time, so that a later layer still wins over a rewritten key of an earlier one. */
export function mapMiniSweAgent(layer: Tree, from: string): Mapped {
  let tree = layer;
  const warnings: string[] = [];
  const problems: string[] = [];
  let apiKey: string | undefined;
  let defaults: Tree | undefined;
  for (const [key, rule] of Object.entries(RULES)) {
    const path = key.split('.');
    const value = at(layer, path);
    if (value === undefined) continue;
    const answer = rule(value, layer);
    if (answer === 'keep') continue;
    tree = without(tree, path);
    if (answer === 'drop') continue;
    if ('problem' in answer) problems.push(`${key} (${from}): ${answer.problem}`);
    if ('warning' in answer && answer.warning) warnings.push(`${key} (${from}): ${answer.warning}`);
    // Keys of this program win over mapped ones.
    if ('set' in answer) {
      tree = merge(answer.set, tree);
      apiKey = answer.key ?? apiKey;
      if (answer.defaults) defaults = merge(defaults ?? {}, answer.defaults);
    }
  }
  const key = apiKey === undefined ? {} : { key: apiKey };
  return { tree, warnings, problems, ...key, ...(defaults && { defaults }) };
}

// `environment.run_args`, arguments of `docker run`: keys of this program, or why there is no key.

/** Flags without a value, which every container has. */
const SWITCHES: ReadonlySet<string> = new Set(['--rm', '--init', '-d', '--detach']);

const environment =
  (key: string, convert: (value: string) => unknown = (v) => v) =>
  (value: string): Tree => ({ environment: { [key]: convert(value) } });
const assignment = (given: string): Tree => {
  const { flag, value = '' } = splitFlag(given);
  return { environment: { env: { [flag]: value } } };
};
/** At the first "=". */
const splitFlag = (arg: string): { flag: string; value?: string } => {
  const at = arg.indexOf('=');
  return at === -1 ? { flag: arg } : { flag: arg.slice(0, at), value: arg.slice(at + 1) };
};

const OPTIONS: Readonly<Record<string, ((value: string) => Tree) | { readonly note: string }>> = {
  '--network': environment('network'),
  '--net': environment('network'),
  '--memory': environment('memory'),
  '-m': environment('memory'),
  '--cap-drop': { note: "capabilities are the engine's default set" },
  '--memory-swap': { note: 'swap is always the memory limit' },
  '--cpus': environment('cpus', Number),
  '--pids-limit': environment('pids_limit', Number),
  '--user': environment('user'),
  '-u': environment('user'),
  '--platform': environment('platform'),
  '--pull': environment('pull'),
  '--workdir': environment('cwd'),
  '-w': environment('cwd'),
  '--env': assignment,
  '-e': assignment,
};

function mapRunArgs(value: unknown): Answer {
  if (!Array.isArray(value) || value.some((arg) => typeof arg !== 'string'))
    return { problem: 'expected a list of arguments' };
  const args = value as string[];
  let set: Tree = {};
  const notes: string[] = [];
  const refused: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (SWITCHES.has(arg)) continue;
    const { flag, value: inline } = arg.startsWith('--') ? splitFlag(arg) : { flag: arg };
    const target = OPTIONS[flag];
    const given = inline ?? args[i + 1];
    if (!target || given === undefined) {
      refused.push(arg);
      if (inline === undefined && given !== undefined && !given.startsWith('-')) i += 1;
      continue;
    }
    if (inline === undefined) i += 1;
    if ('note' in target) notes.push(`${flag}: ${target.note}`);
    else set = merge(set, target(given));
  }
  if (refused.length > 0)
    return {
      problem: `${refused.join(', ')} cannot be passed to the engine; there are keys for network, memory, cpus, pids_limit, user, platform, env and cwd`,
    };
  return { set, warning: notes.join('; ') };
}

// The protocol of a configuration file of version 2, so that it runs with `-c` alone. The file does not name it, because mini-swe-agent chose it
// by the model class. The prompt shows which it is; if it does not, nothing starts.

const NOTHING: Rewritten = { tree: {}, warnings: [], problems: [] };

/** Only files of version 2 have templates under `model`. */
const isVersion2 = (layer: Tree): boolean =>
  at(layer, ['model', 'observation_template']) !== undefined ||
  at(layer, ['model', 'format_error_template']) !== undefined;

const PROMPTS = [
  ['agent', 'system_template'],
  ['agent', 'instance_template'],
  ['model', 'format_error_template'],
];

/** `merged` has all layers so far, this one included, in our own keys. */
export function recognise(layer: Tree, from: string, merged: Tree): Rewritten {
  const settled =
    at(merged, ['agent', 'protocol']) !== undefined || at(merged, ['agent', 'compat']) !== undefined;
  if (settled || !isVersion2(layer)) return NOTHING;
  const inProtocol = (agent: { readonly protocol: string } & Tree, why: string): Rewritten => ({
    tree: { agent },
    warnings: [
      `agent.protocol: ${agent.protocol}, because ${from} is a configuration of mini-swe-agent 2 ${why}; agent.compat=mini-swe-agent-2 restores the rest of its behaviour`,
    ],
    problems: [],
  });
  if (at(layer, ['model', 'action_regex']) !== undefined)
    return inProtocol({ protocol: 'bash-block' }, 'with a regular expression for its commands');
  const text = PROMPTS.map((path) => String(at(layer, path) ?? '')).join('\n');
  if (text.includes('```mswea_bash_command'))
    return inProtocol(
      { protocol: 'bash-block', action_regex: V2_ACTION_REGEX },
      'whose prompt asks for mswea_bash_command blocks',
    );
  if (/\btool calls?\b/i.test(text))
    return inProtocol({ protocol: 'tool-call' }, 'whose prompt asks for tool calls');
  return {
    ...NOTHING,
    problems: [
      `agent.protocol: ${from} is a configuration of mini-swe-agent 2, and its prompt asks neither for tool calls nor for blocks; set agent.compat=mini-swe-agent-2, or agent.protocol`,
    ],
  };
}

const DEFAULTS = {
  'mini-swe-agent-1': {
    agent: { protocol: 'bash-block' },
    environment: { cwd: '/', timeout: 30, interpreter: ['bash', '-lc'] },
  },
  'mini-swe-agent-2': {
    environment: { cwd: '/', timeout: 30, interpreter: ['bash', '-lc'] },
  },
} as const satisfies Record<string, Tree>;

/** Applies `agent.compat`: the defaults of the published agent's code where the files set nothing. */
export function applyCompat(given: Tree): Rewritten {
  const compat = at(given, ['agent', 'compat']);
  if (compat !== 'mini-swe-agent-1' && compat !== 'mini-swe-agent-2')
    return { tree: given, warnings: [], problems: [] };
  const warnings: string[] = [];
  const problems: string[] = [];
  let tree = merge(DEFAULTS[compat], given);

  if (compat === 'mini-swe-agent-1' && at(tree, ['agent', 'protocol']) !== 'bash-block')
    problems.push('agent.protocol: mini-swe-agent 1 knows only bash-block');
  if (at(tree, ['environment', 'image']) !== undefined)
    problems.push(
      'environment.image: the published batch agent takes the image of each instance; leave it out',
    );
  if (compat === 'mini-swe-agent-2') {
    const inferred = protocolOfV2(tree);
    tree = merge(inferred.tree, tree);
    warnings.push(...inferred.warnings);
  }
  tree = merge(cacheControlOf(tree), tree);
  if (at(given, ['environment', 'network']) === undefined)
    warnings.push(
      'environment.network: off by default; the published agent had a network (environment.network: bridge)',
    );
  return { tree, warnings, problems };
}

/** Both versions mark the last message for caching for models with these names, unless the file sets something, null included. */
const CACHED = ['anthropic', 'sonnet', 'opus', 'claude'];

function cacheControlOf(tree: Tree): Tree {
  const name = String(at(tree, ['model', 'model_name']) ?? '').toLowerCase();
  return CACHED.some((part) => name.includes(part)) ? { model: { set_cache_control: 'default_end' } } : {};
}

/** Text configurations of version 2 do not name the protocol; their runs chose a text-based model class on the command line. */
function protocolOfV2(tree: Tree): { tree: Tree; warnings: string[] } {
  const protocol = at(tree, ['agent', 'protocol']);
  const inBlocks = { action_regex: V2_ACTION_REGEX };
  if (protocol !== undefined)
    return { tree: protocol === 'bash-block' ? { agent: inBlocks } : {}, warnings: [] };
  const asksForBlocks = ['system_template', 'instance_template'].some((key) =>
    String(at(tree, ['agent', key])).includes('```mswea_bash_command'),
  );
  if (!asksForBlocks) return { tree: { agent: { protocol: 'tool-call' } }, warnings: [] };
  return {
    tree: { agent: { protocol: 'bash-block', ...inBlocks } },
    warnings: [
      'agent.protocol: bash-block, because the prompt asks for mswea_bash_command blocks; set agent.protocol to say otherwise',
    ],
  };
}
