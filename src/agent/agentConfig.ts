/** What a user may set under `agent:`. Names are mini-swe-agent's where it has one. 0 (or none) means off for every limit. */
import { z } from 'zod';

/** The seeds' default asks for a block; what asks for a call of the tool says the same otherwise. */
export const TOOL_CALL_INSTANCE_TEMPLATE =
  "Your task: {{task}}. Please reply with a call of the tool bash that holds a single shell command. To finish, the first line of the output of the shell command must be 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'.";

export const agentConfigSchema = z.strictObject({
  agent_class: z
    .string()
    .default('default')
    .describe('default, or the path of a module that exports createAgent'),
  protocol: z.enum(['bash-block', 'tool-call']).default('bash-block'),
  compat: z
    .enum(['mini-swe-agent-1', 'mini-swe-agent-2'])
    .nullable()
    .default(null)
    .describe('restores the published behaviour of 1.17.5 or 2.4.6'),
  system_template: z.string().default('You are a helpful assistant that can do anything.'),
  instance_template: z
    .string()
    .default(
      "Your task: {{task}}. Please reply with a single shell command in triple backticks. To finish, the first line of the output of the shell command must be 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'.",
    )
    .describe('the default asks for what the protocol takes'),
  observation_template: z
    .string()
    .optional()
    .describe('mini-swe-agent 1 calls it action_observation_template'),
  format_error_template: z.string().optional(),
  timeout_template: z.string().optional(),
  action_regex: z
    .string()
    .default('```bash\\s*\\n([\\s\\S]*?)\\n```')
    .describe('bash-block only; one capture group'),
  step_limit: z.number().int().min(0).default(0),
  cost_limit: z.number().min(0).default(3).describe('dollars'),
  token_limit: z.number().int().min(0).default(0),
  wall_time_limit_seconds: z.number().min(0).default(0),
  max_consecutive_format_errors: z.number().int().min(0).default(3),
  max_consecutive_empty_replies: z.number().int().min(0).default(3),
  max_consecutive_timeouts: z.number().int().min(0).default(0),
  expose_fields: z
    .array(z.string())
    .default([])
    .describe('fields of the dataset row that templates may use beside task'),
});
export type AgentConfig = z.infer<typeof agentConfigSchema>;
