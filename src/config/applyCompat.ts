/** Applies `agent.compat`: the defaults of the published agent's code where the files set nothing. */
import { at, isTree, merge, type Rewritten, type Tree } from './merge.ts';
import { V2_ACTION_REGEX } from './miniSweAgent.ts';

const DEFAULTS = {
  'mini-swe-agent-1': {
    agent: { protocol: 'bash-block' },
    environment: { cwd: '/', timeout: 30, interpreter: ['bash', '-lc'] },
  },
  'mini-swe-agent-2': {
    environment: { cwd: '/', timeout: 30, interpreter: ['bash', '-lc'] },
  },
} as const satisfies Record<string, Tree>;

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
  const agent = at(tree, ['agent']);
  const protocol = at(tree, ['agent', 'protocol']);
  const asksForBlocks =
    isTree(agent) &&
    [agent.system_template, agent.instance_template].some((t) => String(t).includes('```mswea_bash_command'));
  if (protocol === undefined)
    return asksForBlocks
      ? {
          tree: { agent: { protocol: 'bash-block', action_regex: V2_ACTION_REGEX } },
          warnings: [
            'agent.protocol: bash-block, because the prompt asks for mswea_bash_command blocks; set agent.protocol to say otherwise',
          ],
        }
      : { tree: { agent: { protocol: 'tool-call' } }, warnings: [] };
  return {
    tree: protocol === 'bash-block' ? { agent: { action_regex: V2_ACTION_REGEX } } : {},
    warnings: [],
  };
}
