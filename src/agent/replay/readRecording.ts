/** A trajectory as something that this agent can play: its configuration in our words, and its messages. */

import { z } from 'zod';
import { contentText } from '../../base/text/contentText.ts';
import {
  type MiniTrajectory,
  parseTrajectory,
  type TrajectoryMessage,
} from '../../formats/miniSweAgent/trajectory.ts';
import { storedReply } from '../../model/dialects/everyDialect.ts';
import { type AgentConfig, agentConfigSchema } from '../agentConfig.ts';

const record = z.record(z.string(), z.unknown());

const toolCallSchema = z.looseObject({
  id: z.string().catch(''),
  type: z.literal('function').catch('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string().catch('') }),
});
const messageSchema = z.looseObject({
  role: z.enum(['system', 'user', 'assistant', 'tool', 'exit']),
  content: z.union([z.string(), z.null(), z.array(z.unknown())]).optional(),
  tool_calls: z.array(toolCallSchema).nullish(),
  tool_call_id: z.string().optional(),
  extra: record.optional(),
});
export type RecordedMessage = z.infer<typeof messageSchema>;

/** Stricter than the file's reader: what this agent can play. */
const playableSchema = z.object({
  info: z.object({
    config: z
      .looseObject({ agent: record.default({}), model: record.default({}), environment: record.default({}) })
      .prefault({}),
  }),
  messages: z.array(messageSchema),
});

export interface RecordedTrajectory {
  readonly instanceId: string;
  readonly format: MiniTrajectory['format'];
  readonly config: AgentConfig;
  readonly environmentVars: Readonly<Record<string, unknown>>;
  readonly modelVars: Readonly<Record<string, unknown>>;
  readonly modelName: string;
  readonly messages: readonly RecordedMessage[];
  readonly exitStatus: string;
  readonly submission: string;
  /** null where it is not known. */
  readonly costDollars: number | null;
}

/** A trajectory, and nothing that this agent can play. */
export class UnplayableRecording extends Error {
  override readonly name = 'UnplayableRecording';
  readonly instanceId: string;
  constructor(instanceId: string, why: string) {
    super(`${instanceId}: ${why}`);
    this.instanceId = instanceId;
  }
}

/** Throws ZodError for a file that is not a trajectory, and UnplayableRecording for one that this agent cannot play. */
export function readRecording(json: unknown): RecordedTrajectory {
  const trajectory = parseTrajectory(json);
  const instanceId = trajectory.instanceId ?? 'unknown';
  const { info, messages } = playableSchema.parse({
    info: { config: trajectory.config },
    messages: trajectory.messages.map(inChatForm),
  });
  // Version 1 writes such a file when no container came up.
  if (messages.length < 2)
    throw new UnplayableRecording(
      instanceId,
      'the trajectory has no messages, so there is nothing to replay',
    );
  if (Object.keys(info.config.agent).length === 0)
    throw new UnplayableRecording(
      instanceId,
      'the trajectory does not hold the configuration of its agent (info.config.agent), so its templates are not known',
    );
  return {
    instanceId,
    format: trajectory.format,
    config: recordedAgentConfig(info.config, trajectory.version ?? '', trajectory.format),
    environmentVars: info.config.environment,
    modelVars: info.config.model,
    modelName: String(info.config.model.model_name ?? ''),
    messages,
    exitStatus: trajectory.exitStatus ?? '',
    submission: trajectory.submission ?? '',
    costDollars: trajectory.costDollars,
  };
}

/** The recorded configuration in our words; the version decides what its code did where the configuration is silent. */
export function recordedAgentConfig(
  config: Readonly<Record<string, unknown>>,
  version: string,
  format: MiniTrajectory['format'],
): AgentConfig {
  const [agent, model] = [config.agent, config.model].map((section) => record.catch({}).parse(section)) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ];
  // A trajectory of ours carries our own keys.
  if ('compat' in agent) return agentConfigSchema.strip().parse(agent);
  const first = format === 'mini-swe-agent-1';
  const modelType = String(config.model_type ?? '');
  const toolCalls = !first && !/textbased/i.test(modelType);
  return agentConfigSchema.strip().parse({
    ...agent,
    compat: first ? 'mini-swe-agent-1' : 'mini-swe-agent-2',
    protocol: toolCalls ? 'tool-call' : 'bash-block',
    observation_template: agent.action_observation_template ?? model.observation_template,
    format_error_template: agent.format_error_template ?? model.format_error_template,
    // The whole configuration is recorded: where this is missing, the version (before 2.4.0) had no cap.
    max_consecutive_format_errors: agent.max_consecutive_format_errors ?? 0,
    ...(first ? { action_regex: agent.action_regex ?? regexOf(version) } : {}),
    ...(first || toolCalls || model.action_regex === undefined ? {} : { action_regex: model.action_regex }),
  });
}

/** `\s*` after the language came with 1.12.0. */
function regexOf(version: string): string {
  const [major = 1, minor = 17] = version.split('.').map(Number);
  return major === 1 && minor < 12 ? '```bash\\n([\\s\\S]*?)\\n```' : '```bash\\s*\\n([\\s\\S]*?)\\n```';
}

/** The response is the message itself there; here it is kept beside what it says, as with the other classes. */
function fromResponse({ extra, ...response }: TrajectoryMessage): TrajectoryMessage {
  const { native: _items, ...message } = storedReply(response)?.message ?? { content: null };
  return { ...message, role: 'assistant', extra: { ...extra, response } };
}

function inChatForm(message: TrajectoryMessage): TrajectoryMessage {
  if (message.object === 'response') return fromResponse(message);
  const { type, call_id: id, output, content, ...rest } = message;
  if (type === 'function_call_output') return { ...rest, role: 'tool', tool_call_id: id, content: output };
  return type === 'message' ? { ...rest, content: contentText(content) } : message;
}
