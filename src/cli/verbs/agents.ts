/** `swebatch agents add | ls | verify | remove`: programs of others that can work on instances. */
import { EXAMPLE, FETCHED } from '../../agent/agents.ts';
import { inert } from '../../base/text/inert.ts';
import { type AddedAgent, addedName } from '../../run/agents/agentCache.ts';
import { addAgent, listAgents, removeAgent, verifyAgents } from '../../run/agents/installedAgents.ts';
import type { Caller } from '../../run/caller.ts';
import { UserError } from '../../run/userError.ts';
import { filledText } from '../flags/checks.ts';
import { type Args, defineVerb, flags, json, string } from '../flags/verb.ts';
import { EXIT, printData, printJson, say } from '../terminal/context.ts';
import { fetchProgress } from '../terminal/fetchProgress.ts';
import { table } from '../terminal/table.ts';

const agentsFlags = flags({
  action: {
    ...string(
      'add: fetch or copy it once; ls: what was added; verify: compare with the hashes; remove: with what was unpacked',
    ),
    choices: ['add', 'ls', 'verify', 'remove'],
    place: 'required',
  },
  agent: {
    ...filledText(`${EXAMPLE}; also ${FETCHED.slice(1).join(', ')}; or a name for what SOURCE has`),
    place: 'optional',
  },
  source: {
    ...filledText(
      'add: npm:NAME@1.2.3, pypi:NAME==1.2.3, a folder or a tar file; without a name: that of its command',
    ),
    place: 'optional',
  },
  json,
});

interface Result {
  readonly code: number;
  readonly data: unknown;
  readonly text: string;
}

const caller = (): Caller => ({
  env: process.env,
  cwd: process.cwd(),
  tell: ({ text }) => say(inert(text)),
});

const rowsOf = (agents: readonly AddedAgent[]): string[][] =>
  agents.flatMap((agent) =>
    agent.variants.flatMap(({ libc, packages }) =>
      packages.map((p) => [
        addedName(agent),
        libc ?? 'any',
        `${inert(p.name)}@${inert(p.version)}`,
        `${(p.bytes / 1e6).toFixed(1)} MB`,
        inert(p.licence),
      ]),
    ),
  );

const listed = (agents: readonly AddedAgent[]): string =>
  table(['agent', 'C library', 'package', 'packed', 'licence'], rowsOf(agents));

const required = (agent: string | undefined, action: string): string => {
  if (agent !== undefined) return agent;
  throw new UserError(`agents ${action} needs an agent`, {
    hint: `for example: swebatch agents ${action} ${EXAMPLE}`,
  });
};

async function add({ agent, source }: Args<typeof agentsFlags>): Promise<Result> {
  const first = required(agent, 'add');
  const progress = fetchProgress();
  const around: Parameters<typeof addAgent>[1] = {
    ...caller(),
    tell({ text }) {
      progress.clear();
      say(inert(text));
    },
    progress: progress.show,
  };
  const added = await (source === undefined
    ? addAgent(first, around)
    : addAgent(source, around, first)
  ).finally(progress.clear);
  if (added.program)
    say(
      `its commands: ${added.program.commands.map(inert).join(', ')}; a run names it with agent.program: ${added.agent}`,
    );
  say('the packages keep their licences; they stay on this machine and its engines');
  return { code: EXIT.done, data: added, text: listed([added]) };
}

async function ls(): Promise<Result> {
  const agents = listAgents(caller());
  const text =
    agents.length > 0 ? listed(agents) : `no agent was added; for example: swebatch agents add ${EXAMPLE}`;
  return { code: EXIT.done, data: agents, text };
}

async function verify({ agent }: Args<typeof agentsFlags>): Promise<Result> {
  const checks = await verifyAgents(agent, caller());
  const lines = checks.map(
    (check) =>
      `${addedName(check.agent)}: ${check.problems.map(inert).join('; ') || 'every package has its hash'}`,
  );
  const bad = checks.some(({ problems }) => problems.length > 0);
  const data = checks.map((check) => ({ agent: addedName(check.agent), problems: check.problems }));
  return { code: bad ? EXIT.gate : EXIT.done, data, text: lines.join('\n') || 'no agent was added' };
}

async function remove({ agent }: Args<typeof agentsFlags>): Promise<Result> {
  const removed = await removeAgent(required(agent, 'remove'), caller());
  const lines = removed.map(({ agent: name, volumes, inUse }) => {
    const kept = inUse.length > 0 ? `; a container still uses ${inUse.join(', ')}` : '';
    return `removed ${name}, and ${volumes.length} unpacked program(s)${kept}`;
  });
  const stays = removed.some(({ inUse }) => inUse.length > 0);
  return { code: stays ? EXIT.storage : EXIT.done, data: removed, text: lines.join('\n') };
}

const ACTIONS = { add, ls, verify, remove } as const;

export const agentsVerb = defineVerb({
  name: 'agents',
  describe: `add, list, verify and remove agents of others: ${FETCHED.join(', ')}, and any program of npm, PyPI, a folder or a tar file`,
  flags: agentsFlags,
  examples: [
    [`$0 agents add ${EXAMPLE}`, 'fetch it once; runs name it with agent.agent_class'],
    [
      '$0 agents add qwen npm:@qwen-code/qwen-code@0.24.4',
      'any program: agent.program: qwen, agent.command: qwen --yolo -p {{task}}',
    ],
    ['$0 agents verify', 'exit 1 when a package is missing or damaged'],
  ],
  async run(args) {
    const { code, data, text } = await ACTIONS[args.action](args);
    if (args.json) printJson(data);
    else printData(text);
    return code;
  },
});
