/**
 * Keys that mini-swe-agent's configurations have and ours do not: mapped, accepted with a warning, or refused with the reason.
 * Its sources are 1.17.5 and 2.4.6 (reference agent.md 1.5).
 */

import { mapRunArgs } from './dockerRunArgs.ts';
import { at, isTree, merge, nest, type Tree, without } from './merge.ts';

export interface Mapped {
  readonly tree: Tree;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}

type Answer =
  | { readonly set: Tree; readonly warning?: string }
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

/** The regex of 2's text-based classes; their configurations leave it to the code. */
export const V2_ACTION_REGEX = '```mswea_bash_command\\s*\\n([\\s\\S]*?)\\n```';

const NO_RESPONSES_API = 'the Responses API is not supported; use chat completions (model_class: openai)';
const MODEL_CLASSES: Readonly<Record<string, Answer>> = {
  litellm: { set: { agent: { protocol: 'tool-call' }, model: { model_class: 'openai' } } },
  litellm_textbased: {
    set: {
      agent: { protocol: 'bash-block', action_regex: V2_ACTION_REGEX },
      model: { model_class: 'openai' },
    },
  },
  litellm_response: {
    set: { agent: { protocol: 'tool-call' }, model: { model_class: 'openai', dialect: 'responses' } },
  },
  openrouter_response: { problem: NO_RESPONSES_API },
  portkey_response: { problem: NO_RESPONSES_API },
  deterministic: { problem: 'use --model scripted:PATH instead' },
};
for (const gateway of ['openrouter', 'openrouter_textbased', 'portkey', 'requesty', 'anthropic'])
  Object.assign(MODEL_CLASSES, {
    [gateway]: {
      problem: `"${gateway}" is not a model class here; use model_class openai with base_url and api_key_env of that service`,
    },
  });

const ENVIRONMENT_CLASSES: Readonly<Record<string, string>> = Object.fromEntries(
  ['singularity', 'swerex_docker', 'swerex_modal', 'bubblewrap', 'contree'].map((name) => [
    name,
    `"${name}" environments are not supported; use docker, local, or the path of your own module`,
  ]),
);

const interactive = refuse('only the interactive agent has it, and a batch has nobody to ask');

const RULES: Readonly<Record<string, Rule>> = {
  'agent.action_observation_template': moveTo('agent', 'observation_template'),
  'agent.output_path': ignored('every step is recorded in the database; the path is not used'),
  'agent.mode': interactive,
  'agent.whitelist_actions': interactive,
  'agent.confirm_exit': interactive,
  'environment.executable': (value) =>
    value === 'docker' ? 'drop' : { problem: `only the Docker engine is supported, not "${value}"` },
  'environment.run_args': (value) => mapRunArgs(value),
  'environment.forward_env': refuseUnlessEmpty(
    'nothing of this machine is forwarded into a container, so that no secret can get there; set environment.env with plain values',
  ),
  'environment.environment_class': (value) => {
    const reason = ENVIRONMENT_CLASSES[String(value)];
    return reason ? { problem: reason } : 'keep';
  },
  'model.observation_template': moveTo('agent', 'observation_template'),
  'model.format_error_template': moveTo('agent', 'format_error_template'),
  'model.action_regex': moveTo('agent', 'action_regex'),
  'model.multimodal_regex': refuseUnlessEmpty('multimodal content in text is not supported'),
  'model.litellm_model_registry': refuseUnlessEmpty(
    'put the prices under model.prices (dollars per million tokens)',
  ),
  'model.litellm_model_name_override': refuseUnlessEmpty('put the prices under model.prices'),
  'model.model_class': (value) => modelClass(String(value)),
  'model.model_kwargs': (value) => modelKwargs(value),
  'run.env_startup_command': moveTo('environment', 'startup_command'),
};

function modelClass(name: string): Answer {
  const short = /^minisweagent\.models\.(?:\w+\.)*(\w+?)(?:_model)?\.\w+$/.exec(name)?.[1] ?? name;
  const known = Object.hasOwn(MODEL_CLASSES, short) ? MODEL_CLASSES[short] : undefined;
  if (known) return known;
  return name.startsWith('minisweagent.')
    ? { problem: `"${name}" is a Python class; use openai, or the path of your own module` }
    : 'keep';
}

/** litellm reads these itself; an endpoint does not know them. */
const LITELLM_ONLY: Readonly<Record<string, string>> = {
  drop_params: 'litellm alone knows it; parameters are sent as they are given',
  num_retries: 'retries are set under model.retry',
  timeout: 'timeouts are set by model.total_timeout_s and its neighbours',
  custom_llm_provider: 'the endpoint is set by model.base_url',
};

function modelKwargs(value: unknown): Answer {
  if (Array.isArray(value))
    return { problem: 'a list of models is not supported; use arms, or one run for each' };
  if (!isTree(value)) return 'keep';
  const dropped = Object.keys(value).filter((key) => Object.hasOwn(LITELLM_ONLY, key));
  if (dropped.length === 0) return 'keep';
  const rest = Object.fromEntries(Object.entries(value).filter(([key]) => !dropped.includes(key)));
  return {
    set: { model: { model_kwargs: rest } },
    warning: dropped.map((key) => `${key} is not sent: ${LITELLM_ONLY[key]}`).join('; '),
  };
}

/** Rewrites one layer, so that a later layer still wins over what an earlier one's key became. */
export function mapMiniSweAgent(layer: Tree, from: string): Mapped {
  let tree = layer;
  const warnings: string[] = [];
  const problems: string[] = [];
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
    // What the layer says in our own words wins over what is derived from mini-swe-agent's.
    if ('set' in answer) tree = merge(answer.set, tree);
  }
  return { tree, warnings, problems };
}
