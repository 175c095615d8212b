/** The prompt, protocol and limits of an agent, and where each came from: one line of the plan, because a file can replace more than it says. */
import { isAbsolute, relative, sep } from 'node:path';
import { agentNamed } from '../../agent/agents.ts';
import { PACKAGE_CONFIGS } from '../../config/readConfig.ts';
import { configRows, type ResolvedConfig } from './resolveConfig.ts';

export interface AgentOrigins {
  readonly arm: string;
  /** The file, the words of the command line, `built in`, or `arms` where arms differ. */
  readonly prompt: string;
  /** The protocol of the built-in agent or a user's module; null for a program, which has its own. */
  readonly protocol: { readonly value: string; readonly from: string } | null;
  readonly limits: readonly { readonly says: string; readonly from: string }[];
}

export async function agentOrigins(resolved: ResolvedConfig, cwd: string): Promise<AgentOrigins[]> {
  const from = new Map(configRows(resolved).map((row) => [row.path, row.from]));
  return Promise.all(
    resolved.arms.map(async ({ name, agent }) => {
      const origin = (key: string) =>
        shownOrigin(from.get(`${name}: agent.${key}`) ?? from.get(`agent.${key}`) ?? 'default', cwd);
      const kind = await agentNamed(agent.agent_class);
      const program = kind !== undefined && kind.prompted !== true;
      const seconds = agent.wall_time_limit_seconds;
      return {
        arm: name,
        prompt: origin(program ? 'prompt_template' : 'instance_template'),
        protocol: program ? null : { value: agent.protocol, from: origin('protocol') },
        limits: [
          {
            says: limit(agent.step_limit, `${agent.step_limit} steps`, 'no step limit'),
            from: origin('step_limit'),
          },
          {
            says: limit(agent.cost_limit, `$${agent.cost_limit}`, 'no cost limit'),
            from: origin('cost_limit'),
          },
          { says: limit(seconds, `${seconds} s`, 'no time limit'), from: origin('wall_time_limit_seconds') },
        ],
      };
    }),
  );
}

const limit = (value: number, says: string, none: string): string => (value > 0 ? says : none);

/** A file of this program by its name, one of this folder by its path from here. */
function shownOrigin(from: string, cwd: string): string {
  if (from === 'default' || from === 'derived') return 'built in';
  if (!isAbsolute(from)) return from;
  const packaged = from.startsWith(`${PACKAGE_CONFIGS}${sep}`);
  const near = relative(packaged ? PACKAGE_CONFIGS : cwd, from);
  return near.startsWith('..') ? from : near;
}

/** Parts of one origin are named together. */
export function agentLine({ prompt, protocol, limits }: Omit<AgentOrigins, 'arm'>): string {
  const parts = [
    { says: 'prompt', from: prompt },
    ...limits,
    ...(protocol ? [{ says: protocol.value, from: protocol.from }] : []),
  ];
  const groups = Map.groupBy(parts, (part) => part.from);
  return [...groups].map(([from, of]) => `${of.map(({ says }) => says).join(', ')} (${from})`).join(' · ');
}
