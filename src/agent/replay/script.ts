/** From a recording to what a replay feeds: the task, the replies, and for each command its output. Text that the agent wrote is never fed back. */
import type { CommandResult } from '../../environment/environment.ts';
import type { ModelReply, ToolCall } from '../../model/model.ts';
import type { Vars } from '../../template/render.ts';
import { type Action, isAction } from '../action.ts';
import { contentText } from '../degrade.ts';
import { dialectOf } from '../dialect.ts';
import type { Protocol } from '../protocol.ts';
import { SUBMIT_MARKERS } from '../submission.ts';
import { templatesOf } from '../templates.ts';
import { textResult } from '../textResult.ts';
import { type InvertObservation, invertValue, observationInverter } from './invert.ts';
import { recordedCost } from './prices.ts';
import type { RecordedMessage, Recording } from './recording.ts';

export interface Script {
  readonly task: string;
  readonly replies: readonly ModelReply[];
  /** In the order in which the commands run. */
  readonly results: readonly CommandResult[];
  readonly elided: readonly { readonly message: number; readonly characters: number }[];
  /** What could not be turned back. */
  readonly notes: readonly string[];
}

export function scriptOf(recording: Recording): Script {
  const { config, messages } = recording;
  const templates = templatesOf(config);
  const protocol = dialectOf(config.compat).protocol(config, recording.environmentVars);
  const vars = varsOf(recording);
  const invert = observationInverter(templates.observation, vars);
  const replies: ModelReply[] = [];
  const results: CommandResult[] = [];
  const elided: { message: number; characters: number }[] = [];
  const notes: string[] = [];

  const task = invertValue(templates.instance, textOf(messages[1]), (mark) => ({ ...vars, task: mark }));
  if (task === null) notes.push('message 1 cannot have come from the instance template');

  for (let i = 2; i < messages.length; i++) {
    const message = messages[i] as RecordedMessage;
    const reply = replyOf(message, recording);
    if (!reply) continue;
    replies.push(reply);
    if (message.role !== 'assistant') continue;
    const actions = protocol.parse(reply).calls.filter(isAction);
    const answers = answersAfter(messages, i, protocol);
    actions.forEach((action, n) => {
      const at = answers[n];
      const result =
        at === undefined
          ? null
          : resultOf(messages[at] as RecordedMessage, action, recording, { vars, invert });
      if (result) {
        if (result.elided > 0) elided.push({ message: at as number, characters: result.elided });
        results.push(result.result);
      } else if (submitsHere(recording, i, actions, n, answers.length)) results.push(submitting(recording));
      else {
        if (at !== undefined) notes.push(`message ${at} cannot have come from the templates`);
        results.push(textResult('', 0));
      }
    });
  }
  return { task: task ?? '', replies, results, elided, notes };
}

const textOf = (message: RecordedMessage | undefined): string => contentText(message?.content);

const varsOf = ({ config, environmentVars, modelVars }: Recording): Vars => ({
  ...config,
  ...environmentVars,
  ...modelVars,
  n_model_calls: 0,
  model_cost: 0,
  elapsed_seconds: 0,
});

/** An assistant message, or the reply that format 1.1 keeps with a format error because the agent dropped it. */
function replyOf(message: RecordedMessage, { modelName }: Recording): ModelReply | null {
  const response = message.extra?.response;
  const choice = firstChoice(response);
  const dropped =
    message.role === 'user' && message.extra?.interrupt_type === 'FormatError' && choice?.message;
  if (message.role !== 'assistant' && !dropped) return null;
  const { extra: _, timestamp: __, ...own } = message as Record<string, unknown>;
  const said = (dropped ? choice.message : own) as Record<string, unknown>;
  return {
    message: { ...said, role: 'assistant', content: (said.content ?? null) as string | null },
    content: contentText(said.content),
    toolCalls: (said.tool_calls ?? []) as ToolCall[],
    finishReason: (choice?.finish_reason ?? null) as string | null,
    modelId: null,
    usage: null,
    costNano: recordedCost(response, modelName, message.extra?.cost),
    raw: response ?? null,
  };
}

function firstChoice(response: unknown): Record<string, unknown> | undefined {
  const choices = (response as { choices?: unknown } | null | undefined)?.choices;
  return Array.isArray(choices) ? (choices[0] as Record<string, unknown> | undefined) : undefined;
}

/** Indices of the messages that answer the turn at `start`, in order. */
function answersAfter(messages: readonly RecordedMessage[], start: number, protocol: Protocol): number[] {
  const answers: number[] = [];
  for (let i = start + 1; i < messages.length; i++) {
    const { role } = messages[i] as RecordedMessage;
    if (role !== (protocol.tools ? 'tool' : 'user')) break;
    answers.push(i);
  }
  return answers;
}

function resultOf(
  message: RecordedMessage,
  action: Action,
  recording: Recording,
  { vars, invert }: { vars: Vars; invert: InvertObservation },
): { result: CommandResult; elided: number } | null {
  const { config } = recording;
  const {
    raw_output: raw,
    returncode,
    exception_type: exception,
    exception_info: info,
  } = message.extra ?? {};
  if (typeof raw === 'string' && typeof returncode === 'number')
    return {
      result: {
        ...textResult(raw, returncode, exception === 'TimeoutExpired'),
        exceptionInfo: String(info ?? ''),
      },
      elided: 0,
    };
  const templates = templatesOf(config);
  const isLast = message === recording.messages.at(-1);
  if (isLast && recording.exitStatus === 'Submitted') return null;
  const text = textOf(message);
  const observed = invert(text, action.command);
  if (observed) return { result: textResult(observed.output, observed.returncode), elided: observed.elided };
  const partial = invertValue(templates.timeout, text, (mark) => ({
    ...vars,
    action: { action: action.command, command: action.command },
    output: mark,
  }));
  return partial === null ? null : { result: textResult(partial, -1, true), elided: 0 };
}

/** The command of the last turn that handed in the work: the one that says the marker, else the first without an answer. */
function submitsHere(
  { messages, exitStatus }: Recording,
  turn: number,
  actions: readonly Action[],
  n: number,
  answered: number,
): boolean {
  const last = messages.findLastIndex((m) => m.role === 'assistant');
  if (exitStatus !== 'Submitted' || turn !== last) return false;
  const named = actions.findIndex((a) => SUBMIT_MARKERS.some((marker) => a.command.includes(marker)));
  return n === (named >= 0 ? named : Math.min(answered, actions.length - 1));
}

/** What was handed in, as the last message has it; the recorded submission is what it is compared with. */
const submitting = ({ messages }: Recording): CommandResult =>
  textResult(`${SUBMIT_MARKERS[0]}\n${textOf(messages.at(-1))}`, 0);
