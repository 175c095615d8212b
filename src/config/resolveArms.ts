/** `arms:` of a configuration: each is the configuration with its own sections merged over. Without any there is one. */

import { type AgentConfig, TOOL_CALL_INSTANCE_TEMPLATE } from '../agent/agentConfig.ts';
import type { GatewayConfig } from '../agent/gateway/gatewayConfig.ts';
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import type { Config } from './configSchema.ts';
import { at, merge, type Tree } from './merge.ts';
import { mapMiniSweAgent } from './miniSweAgent.ts';

export interface Arm {
  readonly name: string;
  readonly agent: AgentConfig;
  readonly environment: EnvironmentConfig;
  readonly model: ModelConfig;
  readonly gateway?: GatewayConfig;
}

/** A tree that was read as a configuration; null where it is none. */
export interface Checked {
  readonly config: Config | null;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}

export function resolveArms(
  config: Config,
  tree: Tree,
  prompt: WrittenPrompt | null,
  check: (tree: Tree) => Checked,
  /** The flags of the command line, over every arm. */
  flags: Tree = {},
): { arms: Arm[]; problems: string[]; warnings: string[] } {
  const problems: string[] = [];
  const warnings: string[] = [];
  if (config.arms.length === 0) return { arms: [armOf(armNameOf(config.model), config)], problems, warnings };
  const arms: Arm[] = [];
  const { arms: _, ...base } = tree;
  const { arms: __, ...over } = flags;
  for (const [i, { name, ...sections }] of config.arms.entries()) {
    const from = `arms[${i}]`;
    const mapped = mapMiniSweAgent(sections as Tree, from);
    const merged = merge(merge(base, mapped.tree), over);
    const checked = check(merged);
    problems.push(...mapped.problems, ...checked.problems.map((p) => `${from}: ${p}`));
    warnings.push(
      ...mapped.warnings,
      ...checked.warnings,
      ...promptWarnings(`${from}: `, promptAfter(prompt, { from, tree: mapped.tree }, merged), merged),
    );
    if (!checked.config) continue;
    const arm = armOf(name ?? armNameOf(checked.config.model), checked.config);
    if (arms.some((other) => other.name === arm.name))
      problems.push(`${from}: the name "${arm.name}" is taken by another arm; give each its own name`);
    arms.push(arm);
  }
  return { arms, problems, warnings };
}

/** The model's name as a valid folder name. */
export const armNameOf = (model: ModelConfig): string =>
  (model.model_name ?? 'default').replace(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 64);

const armOf = (name: string, config: Config): Arm => ({
  name,
  agent: config.agent,
  environment: config.environment,
  model: config.model,
  ...(config.gateway && { gateway: config.gateway }),
});

// A prompt asks for blocks or for tool calls. The default prompt follows the protocol; a custom one that does not fit gets a warning.

const PROMPT = ['agent', 'instance_template'];
const protocolOf = (tree: Tree): unknown => at(tree, ['agent', 'protocol']) ?? 'bash-block';

export const promptOfProtocol = (tree: Tree): Tree =>
  protocolOf(tree) === 'tool-call' && at(tree, PROMPT) === undefined
    ? merge({ agent: { instance_template: TOOL_CALL_INSTANCE_TEMPLATE } }, tree)
    : tree;

/** The layer that set the prompt, and the protocol at that point. */
export interface WrittenPrompt {
  readonly from: string;
  readonly protocol: unknown;
}

/** The prompt of this layer, or else that of the layers before. */
export const promptAfter = (
  before: WrittenPrompt | null,
  layer: { readonly from: string; readonly tree: Tree },
  merged: Tree,
): WrittenPrompt | null =>
  at(layer.tree, PROMPT) === undefined ? before : { from: layer.from, protocol: protocolOf(merged) };

/** No warning under compat, where the protocol is known only at the end. */
export function promptWarnings(where: string, prompt: WrittenPrompt | null, tree: Tree): string[] {
  const protocol = protocolOf(tree);
  if (prompt === null || prompt.protocol === protocol || at(tree, ['agent', 'compat'])) return [];
  return [
    `${where}agent.protocol: ${protocol}, but agent.instance_template (${prompt.from}) was written for ${prompt.protocol}; set the template too, or use ${protocol === 'tool-call' ? '-c swebench.yaml' : '-c default.yaml or swebench-text.yaml'}`,
  ];
}
