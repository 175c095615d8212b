/**
 * Differences of the published agents from ours, one field each, so that the loop reads the same for all three.
 * The published agents are mini-swe-agent 1.17.5 and 2.4.6.
 */

import { isRecord } from '../../base/isRecord.ts';
import { parseJsonAsPython } from '../../base/python/json.ts';
import { universalNewlines } from '../../base/python/lines.ts';
import { strip } from '../../base/python/text.ts';
import { repr, typeName } from '../../base/python/values.ts';
import type { CommandResult, Environment } from '../../environment/environment.ts';
import type { Message, ModelReply, ToolCall } from '../../model/model.ts';
import type { Vars } from '../../template/render.ts';
import type { AgentConfig } from '../agentConfig.ts';
import type { TerminatingException } from '../loop/exceptions.ts';
import {
  type Action,
  bashBlock,
  NO_TOOL_CALLS,
  type Protocol,
  sendableArguments,
  textResult,
  toolCall,
  withUniqueIds,
} from '../loop/protocol.ts';
import { markerPrefix, SUBMIT_MARKERS, type Submission, submissionOf } from '../loop/submission.ts';

export interface Behaviour {
  /** A reply without a usable action stays in the history (2 drops it). */
  readonly keepMalformedReply: boolean;
  /** Observations are added as they come, so that those before a submission in the same turn are kept (2 loses them). */
  readonly observeAsTheyCome: boolean;
  /** A reply with nothing in it is asked for again; in the published agents it is a format error. */
  readonly askAgainWhenEmpty: boolean;
  readonly capFormatErrors: boolean;
  /** Tool calls get ids of their own where a server sends none or the same twice. */
  readonly uniqueIds: boolean;
  /** Work in flight ends at the wall-clock limit; 2 looks only before a query. */
  readonly wallLimit: 'interrupts' | 'before-query';
  /** A timed-out command is an ordinary observation (2) or has its own template. */
  readonly timeoutIsObservation: boolean;
  /** The format error template sees all variables, not only those about the reply. */
  readonly formatErrorSeesAll: boolean;
  formatErrorVars(reply: ModelReply, error: string, found: readonly string[], protocol: Protocol): Vars;
  protocol(config: AgentConfig, environmentVars: Vars): Protocol;
  /** The reply as the history carries it. */
  history(reply: ModelReply, protocol: Protocol): Omit<Message, 'extra'>;
  /** Text that templates and the submission rule see. */
  outputText(result: CommandResult): string;
  exceptionInfo(result: CommandResult, command: string, environment: Environment): string;
  /** The result of a command that is not run at all, else null. */
  refused(action: Action): CommandResult | null;
  /** The `output` that the observation template sees; a template may print it whole. */
  observed(seen: Observed): Vars;
  submission(result: CommandResult): Submission | null;
  exitMessage(end: TerminatingException, submission: string): Omit<Message, 'extra'>;
}

interface Observed {
  readonly result: CommandResult;
  readonly output: string;
  readonly exceptionInfo: string;
  readonly command: string;
}

/** -1 for a command that was killed at its time limit. */
export const returnCode = (result: Pick<CommandResult, 'timedOut' | 'exitCode'>): number =>
  result.timedOut ? -1 : result.exitCode;

/** Arguments longer than this are not repeated in every request. */
const SENT_ARGUMENTS = 256 * 1024;

const formatErrorVars = (reply: ModelReply, error: string, found: readonly string[]): Vars => ({
  error,
  actions: found,
  finish_reason: reply.finishReason,
  has_tool_calls: reply.toolCalls.length > 0,
});

const own: Behaviour = {
  keepMalformedReply: true,
  observeAsTheyCome: true,
  askAgainWhenEmpty: true,
  capFormatErrors: true,
  uniqueIds: true,
  wallLimit: 'interrupts',
  timeoutIsObservation: false,
  formatErrorSeesAll: true,
  formatErrorVars,
  protocol: (config, { max_command_bytes }) =>
    config.protocol === 'tool-call'
      ? // An environment that does not say how long a command may be refuses a longer one itself.
        toolCall(typeof max_command_bytes === 'number' ? max_command_bytes : Number.POSITIVE_INFINITY)
      : bashBlock(config.action_regex),
  history(reply, { tools }) {
    const { extra: _, tool_calls: __, ...message } = reply.message;
    if (reply.toolCalls.length === 0) return message;
    // Calls of a tool that was never offered would have to be answered; the model still sees what it wrote.
    if (!tools) return { ...message, content: reply.content || JSON.stringify(reply.toolCalls) };
    const calls = reply.toolCalls.map((call) => ({
      ...call,
      function: { ...call.function, arguments: sendableArguments(call.function.arguments, SENT_ARGUMENTS) },
    }));
    return { ...message, tool_calls: calls };
  },
  outputText: (result) => result.output,
  exceptionInfo: (result) => (holed(result) ? TOO_LARGE : result.exceptionInfo),
  refused: () => null,
  observed: ({ result, output, exceptionInfo, command }) => ({
    output,
    returncode: returnCode(result),
    exception_info: exceptionInfo,
    action: command,
    total_bytes: result.totalBytes,
    omitted_bytes: result.omittedBytes,
  }),
  submission: (result) => (holed(result) ? null : submissionOf(result)),
  exitMessage: (end) => ({ role: 'exit', content: end.message || end.name }),
};

/** The environment dropped the middle of a submission: the rest would only look like a patch. */
const holed = (result: CommandResult): boolean => result.omittedBytes > 0 && submissionOf(result) !== null;
const TOO_LARGE =
  'The output is too large to submit and was not. Submit a smaller patch: only the source files you changed.';

function publishedSubmission(result: CommandResult, markers: readonly string[]): Submission | null {
  if (result.timedOut || result.exitCode !== 0) return null;
  const output = universalNewlines(result.output);
  const prefix = markerPrefix(output, markers);
  if (prefix === null) return null;
  const text = output.slice(prefix.length);
  return { text, bytes: Buffer.from(text) };
}

const v1: Behaviour = {
  keepMalformedReply: true,
  observeAsTheyCome: true,
  askAgainWhenEmpty: false,
  capFormatErrors: false,
  uniqueIds: false,
  // 1.17.5 has no such limit: a user who sets one wants it.
  wallLimit: 'interrupts',
  timeoutIsObservation: false,
  formatErrorSeesAll: true,
  formatErrorVars,
  protocol: (config) => bashBlock(config.action_regex),
  history: (reply) => ({ role: 'assistant', content: reply.content }),
  // Partial output of a timed-out command arrives as bytes and is not normalised.
  outputText: (result) => (result.timedOut ? result.output : universalNewlines(result.output)),
  exceptionInfo: () => '',
  refused: () => null,
  observed: ({ result, output, command }) => ({ output, returncode: returnCode(result), action: command }),
  submission: (result) => publishedSubmission(result, SUBMIT_MARKERS),
  exitMessage: (_end, submission) => ({ role: 'user', content: submission }),
};

const v2: Behaviour = {
  keepMalformedReply: false,
  observeAsTheyCome: false,
  askAgainWhenEmpty: false,
  capFormatErrors: true,
  uniqueIds: false,
  wallLimit: 'before-query',
  timeoutIsObservation: true,
  formatErrorSeesAll: false,
  formatErrorVars: (reply, error, found, protocol) => {
    const { has_tool_calls, ...vars } = formatErrorVars(reply, error, found);
    return protocol.tools ? { ...vars, has_tool_calls } : vars;
  },
  protocol: (config) => (config.protocol === 'tool-call' ? v2ToolCalls : bashBlock(config.action_regex)),
  /** The OpenAI SDK's message with all its fields, in its order, as the agent's client dumps it. */
  history(reply) {
    const {
      role,
      content,
      refusal,
      annotations,
      audio,
      function_call,
      tool_calls,
      extra: _,
      ...rest
    } = reply.message;
    return {
      content: content ?? null,
      refusal: refusal ?? null,
      role,
      annotations: annotations ?? null,
      audio: audio ?? null,
      function_call: function_call ?? null,
      tool_calls: (tool_calls ?? null)?.map(dumpedCall) ?? null,
      ...rest,
    } as Omit<Message, 'extra'>;
  },
  outputText: (result) => (result.timedOut ? result.output : universalNewlines(result.output)),
  exceptionInfo: publishedFailure,
  refused: refusedByPython,
  observed: ({ result, output, exceptionInfo }) => ({
    output,
    returncode: returnCode(result),
    exception_info: exceptionInfo,
    ...failureVars(exceptionInfo),
  }),
  submission: (result) => publishedSubmission(result, [SUBMIT_MARKERS[0]]),
  exitMessage: (end, submission) => ({
    role: 'exit',
    content: end.name === 'Submitted' ? submission : end.name,
  }),
};

const dumpedCall = (call: ToolCall): unknown => ({
  id: call.id,
  function: { arguments: call.function.arguments, name: call.function.name },
  type: 'function',
});

/** The first call that cannot run fails the whole turn; messages are concatenated without a space, as published. */
const v2ToolCalls: Protocol = {
  ...toolCall(Number.POSITIVE_INFINITY),
  // A call's answer has its fields in this order there; a message about the format is an ordinary one of the user.
  answer: (content, call, extra) =>
    call?.callId === undefined
      ? { role: 'user', content, extra }
      : { content, tool_call_id: call.callId, role: 'tool', extra },
  parse(reply) {
    if (reply.toolCalls.length === 0) return { calls: [], error: NO_TOOL_CALLS, found: [] };
    const calls: Action[] = [];
    for (const call of reply.toolCalls) {
      const parsed = parseJsonAsPython(call.function.arguments);
      const args = parsed.ok ? parsed.value : {};
      let error = parsed.ok ? '' : `Error parsing tool call arguments: ${parsed.message}.`;
      if (call.function.name !== 'bash') error += `Unknown tool '${call.function.name}'.`;
      if (!isRecord(args) || !Object.hasOwn(args, 'command'))
        error += "Missing 'command' argument in bash tool call.";
      if (error) return { calls: [], error: strip(error), found: [] };
      calls.push(actionOf((args as { command: unknown }).command, call.id));
    }
    return { calls, error: null, found: [] };
  },
};

/** The arguments of the call are not checked: a command that is not text fails where the engine's command line is made. */
const actionOf = (command: unknown, callId: string): Action =>
  typeof command === 'string'
    ? { command, callId }
    : { command: JSON.stringify(command), callId, notText: typeName(command).replace(/^None$/, 'NoneType') };

export function behaviourOf(compat: AgentConfig['compat']): Behaviour {
  if (compat === 'mini-swe-agent-1') return v1;
  return compat === 'mini-swe-agent-2' ? v2 : own;
}

/** Gives every tool call of a reply an id of its own; the published agents take them as they come. */
export const withOwnIds = (reply: ModelReply, behaviour: Behaviour, step: number): ModelReply =>
  behaviour.uniqueIds && reply.toolCalls.length > 0
    ? { ...reply, toolCalls: withUniqueIds(reply.toolCalls, step) }
    : reply;

// The text that mini-swe-agent 2.4.6 gives the model when Python could not run a command or killed it: subprocess's words, which it catches whole.
const SAID = 'An error occurred while executing the command: ';

/** Linux takes no single argument of 128 KiB or more; Python encodes the command and adds a NUL. */
const LONGEST_ARGUMENT = 128 * 1024 - 1;

/** A command that never starts there: its result, else null. Nothing is run for it. */
function refusedByPython({ command, notText }: Action): CommandResult | null {
  const why =
    notText !== undefined
      ? `expected str, bytes or os.PathLike object, not ${notText}`
      : command.includes('\0')
        ? 'embedded null byte'
        : Buffer.byteLength(command) > LONGEST_ARGUMENT
          ? "[Errno 7] Argument list too long: 'docker'"
          : null;
  return why === null ? null : { ...textResult('', -1), exceptionInfo: SAID + why };
}

/** '' for a command that ended by itself: whatever else is known of it, the published agent does not say. */
function publishedFailure(result: CommandResult, command: string, environment: Environment): string {
  // A recording has the words themselves: the container that they name is long gone.
  if (environment.info.kind === 'recorded') return result.exceptionInfo;
  if (result.timedOut)
    return `${SAID}Command '${repr(dockerArgv(command, environment))}' timed out after ${timeoutOf(environment)} seconds`;
  return result.exitCode === -1 ? result.exceptionInfo : '';
}

/** `output.extra` of the observation template: the exception by its class and its text. */
const failureVars = (exceptionInfo: string) =>
  exceptionInfo === ''
    ? {}
    : {
        extra: {
          exception_type: exceptionType(exceptionInfo),
          exception: exceptionInfo.replace(SAID, ''),
        },
      };

export function exceptionType(exceptionInfo: string): string {
  const text = exceptionInfo.replace(SAID, '');
  if (/ timed out after \S+ seconds$/.test(text)) return 'TimeoutExpired';
  if (text.startsWith('[Errno ')) return 'OSError';
  return text.startsWith('expected str') ? 'TypeError' : 'ValueError';
}

const timeoutOf = (environment: Environment): string => String(environment.templateVars().timeout ?? 60);

function dockerArgv(command: string, environment: Environment): string[] {
  const vars = environment.templateVars();
  const env = (vars.env ?? {}) as Readonly<Record<string, string>>;
  const interpreter = (vars.interpreter ?? ['bash', '-c']) as readonly string[];
  return [
    'docker',
    'exec',
    '-w',
    String(vars.cwd ?? '/'),
    ...Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]),
    environment.info.containerId ?? '',
    ...interpreter,
    command,
  ];
}
