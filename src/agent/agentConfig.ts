/** The settings under `agent:`. Names are mini-swe-agent's where it has one. 0 (or none) turns a limit off. */
import { z } from 'zod';
import { identity, runtime } from '../base/fieldClass.ts';
import { setting } from '../base/plausible.ts';

/** The seeds' default asks for a block; the text for a call of the tool says the same otherwise. */
export const TOOL_CALL_INSTANCE_TEMPLATE =
  "Your task: {{task}}. Please reply with a call of the tool bash that holds a single shell command. To finish, the first line of the output of the shell command must be 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'.";

/** The prompt asks for no form of replies: each program has its own. */
export const PROMPT_TEMPLATE = `Resolve this issue in the repository at {{cwd}}:

<issue>
{{task}}
</issue>

Change the files of the repository so that the issue is resolved for every case that it describes, and check your work. Nobody can answer
questions, and there is no network. You need not commit: the changes that you leave in the work tree are your answer.`;

const serverName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ -');
const serverUrl = z
  .string()
  .regex(/^https?:\/\/\S+$/, 'must be an address that begins with http:// or https://');
const mcpServerSchema = z.discriminatedUnion('transport', [
  z.strictObject({
    name: serverName,
    transport: z.literal('stdio'),
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
  }),
  z.strictObject({ name: serverName, transport: z.enum(['sse', 'streamable-http']), url: serverUrl }),
]);

const isPathBeside = (path: string): boolean => {
  const names = path.replace(/\/$/, '').split('/');
  const isName = (name: string) => !['', '.', '..'].includes(name) && !/\*\*|[\0\n]/.test(name);
  return names.every(isName) && names[0] !== '*';
};

const digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');

export const agentConfigSchema = z.strictObject({
  agent_class: z
    .string()
    .default('default')
    .meta(
      identity(
        'default; another agent (docs/agents.md), with @VERSION or as it was added; or a module that exports createAgent',
      ),
    ),
  protocol: z.enum(['bash-block', 'tool-call']).default('bash-block').meta(identity()),
  compat: z
    .enum(['mini-swe-agent-1', 'mini-swe-agent-2'])
    .nullable()
    .default(null)
    .meta(identity('restores the published behaviour of 1.17.5 or 2.4.6')),
  system_template: z.string().default('You are a helpful assistant that can do anything.').meta(identity()),
  instance_template: z
    .string()
    .default(
      "Your task: {{task}}. Please reply with a single shell command in triple backticks. To finish, the first line of the output of the shell command must be 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'.",
    )
    .meta(identity('the default asks for what the protocol takes')),
  prompt_template: z
    .string()
    .optional()
    .meta(identity('what installed agents and command get as their task')),
  command: z
    .string()
    .min(1)
    .optional()
    .meta(identity('agent_class command: the shell line that is the agent, a template')),
  program: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]*(?:@[0-9A-Za-z][0-9A-Za-z.+-]*)?$/)
    .optional()
    .meta(identity('agent_class command: a program of "swebatch agents add", its commands on the PATH')),
  model_optional: z
    .boolean()
    .optional()
    .meta(identity('an installed agent may end with 0 without asking its model')),
  beside_work: z
    .array(
      z
        .string()
        .refine(isPathBeside, 'must be a path in the work tree, such as .nanocoder/tasks.json or .aider*'),
    )
    .optional()
    .meta(identity('paths such as .nanocoder or .aider*: what is new there is not in the patch')),
  permissions: z
    .enum(['allow', 'refuse'])
    .optional()
    .meta(identity('agent_class acp: the answer to requests for leave; default: allow')),
  skills: z
    .string()
    .min(1)
    .optional()
    .meta(runtime('a folder with a folder for each skill (SKILL.md), or one skill')),
  skills_sha256: digest.optional().meta(identity('hash over the files of agent.skills')),
  instructions: z
    .string()
    .min(1)
    .optional()
    .meta(runtime('a file that the agent gets as its AGENTS.md, or what it calls that')),
  instructions_sha256: digest.optional().meta(identity('hash of agent.instructions')),
  mcp_servers: z
    .array(mcpServerSchema)
    .optional()
    .meta(identity('servers of tools: name, transport, and command and args (stdio) or url')),
  observation_template: z
    .string()
    .optional()
    .meta(identity('mini-swe-agent 1 calls it action_observation_template')),
  format_error_template: z.string().optional().meta(identity()),
  timeout_template: z.string().optional().meta(identity()),
  action_regex: z
    .string()
    .default('```bash\\s*\\n([\\s\\S]*?)\\n```')
    .meta(
      identity(
        'bash-block only; one capture group; no look-ahead, no back reference; yours reads the first 262144 characters',
      ),
    ),
  step_limit: setting.count(0).default(0).meta(identity()),
  cost_limit: setting.dollars().default(3).meta(identity('dollars')),
  token_limit: setting.tokens(0).default(0).meta(identity()),
  wall_time_limit_seconds: setting
    .seconds()
    .default(0)
    .meta(identity('without the time in which the provider keeps the agent waiting')),
  tell_limits: z
    .boolean()
    .optional()
    .meta(identity('the agent is told its limits: below each observation; a program below its task')),
  max_consecutive_format_errors: setting.count(0).default(3).meta(identity()),
  max_consecutive_empty_replies: setting.count(0).default(3).meta(identity()),
  max_consecutive_timeouts: setting.count(0).default(0).meta(identity()),
  expose_fields: z
    .array(z.string())
    .default([])
    .meta(identity('fields of the dataset row that templates may use beside task')),
});
export type AgentConfig = z.infer<typeof agentConfigSchema>;
