/** A trajectory file as mini-swe-agent (formats 1 and 1.1) or swebatch wrote it, read loosely: what a replay needs and nothing else. */
import { z } from 'zod';
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

const trajectorySchema = z.looseObject({
  trajectory_format: z.enum(['mini-swe-agent-1', 'mini-swe-agent-1.1']),
  instance_id: z.string().default('unknown'),
  info: z.looseObject({
    exit_status: z.string().nullish(),
    submission: z.string().nullish(),
    model_stats: z.looseObject({ instance_cost: z.number().nullable().default(null), api_calls: z.number() }),
    mini_version: z.string().default(''),
    config: z
      .looseObject({
        agent: record.default({}),
        model: record.default({}),
        environment: record.default({}),
      })
      .prefault({}),
  }),
  messages: z.array(messageSchema),
});

const responsesSchema = z.looseObject({
  instance_id: z.string().catch('unknown'),
  messages: z.array(z.looseObject({ object: z.string().optional().catch(undefined) })),
});

export interface Recording {
  readonly instanceId: string;
  readonly format: 'mini-swe-agent-1' | 'mini-swe-agent-1.1';
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

/** Throws ZodError for what is no trajectory, UnplayableRecording for one that this agent cannot play. */
export function readRecording(json: unknown): Recording {
  const ofResponses = responsesSchema.safeParse(json);
  if (ofResponses.success && ofResponses.data.messages.some((m) => m.object === 'response'))
    throw new UnplayableRecording(
      ofResponses.data.instance_id,
      'it was recorded over the Responses API, which is not supported',
    );
  const { info, messages, instance_id, trajectory_format } = trajectorySchema.parse(json);
  // Version 1 writes such a file when no container came up.
  if (messages.length < 2)
    throw new UnplayableRecording(
      instance_id,
      'the trajectory has no messages, so there is nothing to replay',
    );
  if (Object.keys(info.config.agent).length === 0)
    throw new UnplayableRecording(
      instance_id,
      'the trajectory does not hold the configuration of its agent (info.config.agent), so its templates are not known',
    );
  return {
    instanceId: instance_id,
    format: trajectory_format,
    config: recordedAgentConfig(info.config, info.mini_version, trajectory_format),
    environmentVars: info.config.environment,
    modelVars: info.config.model,
    modelName: String(info.config.model.model_name ?? ''),
    messages,
    exitStatus: info.exit_status ?? '',
    submission: info.submission ?? '',
    costDollars: info.model_stats.instance_cost,
  };
}

/** The recorded configuration in our words; the version decides what its code did where the configuration is silent. */
export function recordedAgentConfig(
  config: Readonly<Record<string, unknown>>,
  version: string,
  format: Recording['format'],
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
