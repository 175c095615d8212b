/**
 * Finds the protocol of a configuration file of mini-swe-agent 2, so that it runs with `-c` alone. The file does not name it, because
 * mini-swe-agent chose it by the model class. The prompt shows which it is; if it does not, nothing starts.
 */
import { at, type Rewritten, type Tree } from './merge.ts';
import { V2_ACTION_REGEX } from './miniSweAgent.ts';

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
