/** A prompt asks for blocks or for tool calls. The default prompt follows the protocol; a custom one that does not fit gets a warning. */
import { TOOL_CALL_INSTANCE_TEMPLATE } from '../agent/agentConfig.ts';
import { at, merge, type Tree } from './merge.ts';

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
