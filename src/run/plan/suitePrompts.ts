/** Prompts of suites without a repository: agents are asked in them wherever nobody else wrote a prompt. */
import { readFileSync } from 'node:fs';
import { agentNamed } from '../../agent/agents.ts';
import { at, isTree } from '../../config/merge.ts';
import { PACKAGE_CONFIGS, readYaml } from '../../config/readConfig.ts';
import type { LoadedRow } from '../../dataset/dataset.ts';
import type { SuitePrompts } from '../../suites/suite.ts';
import { suiteOf } from '../../suites/suites.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

/** Tasks of several suites in one dataset share the default. */
function promptsOf(rows: readonly LoadedRow[]): { kind: string; prompts: SuitePrompts } | undefined {
  const kinds = new Set(rows.map((row) => ('file' in row ? undefined : row.instance.kind)));
  const [kind] = kinds;
  const prompts = kinds.size === 1 && kind !== undefined ? suiteOf({ kind }).prompts : undefined;
  return prompts && { kind: kind!, prompts };
}

/** The texts that configurations of this package bring for keys of `agent`, where they are the ones in effect. Mostly they are of one file. */
function packaged({ origins }: ResolvedConfig, keys: readonly string[]): unknown[] {
  const trees = new Map<string, unknown>();
  return keys.map((key) => {
    const from = origins[`agent.${key}`];
    if (!from?.startsWith(PACKAGE_CONFIGS)) return undefined;
    if (!trees.has(from)) trees.set(from, readYaml(readFileSync(from, 'utf8'), from));
    const tree = trees.get(from);
    return isTree(tree) ? at(tree, ['agent', key]) : undefined;
  });
}

export async function withSuitePrompts(
  resolved: ResolvedConfig,
  rows: readonly LoadedRow[],
): Promise<ResolvedConfig> {
  const found = promptsOf(rows);
  if (!found) return resolved;
  const { kind, prompts } = found;
  const [instance, system] = packaged(resolved, ['instance_template', 'system_template']);
  const origins = { ...resolved.origins };
  const arms = await Promise.all(
    resolved.arms.map(async (arm) => {
      const { agent } = arm;
      const program = (await agentNamed(agent.agent_class))?.dialect !== undefined;
      const ours = {
        ...(instance === agent.instance_template && { instance_template: prompts.instance[agent.protocol] }),
        ...(system === agent.system_template && { system_template: prompts.system }),
        ...(program && agent.prompt_template === undefined && { prompt_template: prompts.program }),
      };
      for (const key of Object.keys(ours)) origins[`agent.${key}`] = `the suite ${kind}`;
      return { ...arm, agent: { ...agent, ...ours } };
    }),
  );
  return { ...resolved, arms, origins };
}
