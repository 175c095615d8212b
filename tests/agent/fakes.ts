/** A model and an environment that play what a test gives them and remember what they were asked. */
import type { AgentConfig } from '../../src/agent/agentConfig.ts';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { completeEnvironment } from '../../src/environment/capabilities.ts';
import type { CommandResult, Environment } from '../../src/environment/environment.ts';
import type {
  Message,
  Model,
  ModelReply,
  ModelResponse,
  QueryOptions,
  ToolCall,
} from '../../src/model/model.ts';

export interface Query {
  readonly messages: readonly Message[];
  readonly options: QueryOptions;
}

export type Answer = ModelReply | ModelResponse<ModelReply> | Error | ((query: Query) => Promise<ModelReply>);

export const reply = (content: string | null, more: Partial<ModelReply> = {}): ModelReply => ({
  message: {
    role: 'assistant',
    content,
    ...(more.toolCalls ? { tool_calls: more.toolCalls } : {}),
    ...more.message,
  } as Message,
  content: content ?? '',
  toolCalls: [],
  finishReason: 'stop',
  modelId: 'fake',
  usage: { input: 10, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 },
  costNano: 0,
  raw: { content },
  ...more,
});
export const bash = (command: string, more: Partial<ModelReply> = {}): ModelReply =>
  reply(`THOUGHT\n\n\`\`\`bash\n${command}\n\`\`\``, more);
export const call = (id: string, args: unknown, name = 'bash'): ToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
});
export const calls = (...toolCalls: ToolCall[]): ModelReply =>
  reply(null, { toolCalls, finishReason: 'tool_calls' });

export function fakeModel(answers: readonly Answer[]): Model & { queries: Query[] } {
  const queries: Query[] = [];
  return {
    name: 'fake/model',
    queries,
    templateVars: () => ({ model_name: 'fake/model' }),
    async query(messages, options = {}) {
      const query = { messages: [...messages], options };
      queries.push(query);
      const answer = answers[queries.length - 1];
      if (answer === undefined) throw new Error(`the fake model has no answer number ${queries.length}`);
      if (answer instanceof Error) throw answer;
      const given = typeof answer === 'function' ? await answer(query) : answer;
      return 'success' in given ? given : { success: true, result: given, message: 'ok' };
    },
  };
}

export const result = (output: string | Uint8Array, more: Partial<CommandResult> = {}): CommandResult => {
  const raw = typeof output === 'string' ? Buffer.from(output) : output;
  return {
    output: Buffer.from(raw).toString('utf8'),
    raw,
    exitCode: 0,
    timedOut: false,
    totalBytes: raw.length,
    omittedBytes: 0,
    replacedBytes: 0,
    durationMs: 1,
    oomKilled: false,
    transport: 'local',
    exceptionInfo: '',
    ...more,
  };
};
export const timedOut = (output: string, seconds = 60): CommandResult =>
  result(output, { timedOut: true, exitCode: -1, exceptionInfo: `timed out after ${seconds}s` });
export const SUBMIT = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';
export const submitted = (patch: string | Uint8Array): CommandResult =>
  result(Buffer.concat([Buffer.from(`${SUBMIT}\n`), Buffer.from(patch)]));

export type Outcome =
  | CommandResult
  | Error
  | ((command: string, signal?: AbortSignal) => Promise<CommandResult>);

export function fakeEnvironment(
  outcomes: readonly Outcome[],
  vars: Record<string, unknown> = {},
): Environment & { commands: string[] } {
  const commands: string[] = [];
  return completeEnvironment({
    commands,
    info: { kind: 'fake', containerId: 'c0ffee', transport: 'local', history: 'absent', notes: [] },
    templateVars: () => ({ cwd: '/testbed', timeout: 60, max_command_bytes: 2 ** 20, ...vars }),
    async execute(command, options = {}) {
      commands.push(command);
      const outcome = outcomes[commands.length - 1];
      if (outcome === undefined)
        throw new Error(`the fake environment has no output number ${commands.length}`);
      if (outcome instanceof Error) throw outcome;
      return typeof outcome === 'function' ? outcome(command, options.signal) : outcome;
    },
    capturePatch: async () => ({ patch: new Uint8Array(), state: 'empty', warnings: [] }),
    putFile: async () => {},
    getFile: async () => new Uint8Array(),
    close: async () => {},
  });
}

export const config = (more: Partial<AgentConfig> = {}): AgentConfig =>
  agentConfigSchema.parse({ system_template: 'system', instance_template: 'task: {{ task }}', ...more });

/** Messages as a provider gets them: without `extra`. */
export const sent = (messages: readonly Message[]): unknown[] =>
  messages.map(({ extra: _, ...message }) => message);
