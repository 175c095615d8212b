/** What trajectories keep beside each message, in mini-swe-agent's names. */
import type { CommandResult } from '../../environment/environment.ts';
import type { Message, ModelReply } from '../../model/model.ts';
import { nanoToDollars } from '../../money.ts';
import { exceptionType, returnCode } from '../compat/behaviour.ts';
import type { TerminatingException } from './exceptions.ts';
import { isAction, type ParsedTurn } from './protocol.ts';

type Extra = Readonly<Record<string, unknown>>;

export const assistantExtra = (reply: ModelReply, turn: ParsedTurn): Extra => ({
  actions: turn.calls
    .filter(isAction)
    .map(({ command, callId }) => (callId === undefined ? { command } : { command, tool_call_id: callId })),
  ...responseExtra(reply),
});

const responseExtra = (reply: ModelReply): Extra => ({
  response: reply.raw,
  cost: reply.costNano === null ? null : nanoToDollars(reply.costNano),
});

/** `dropped` is a reply that is not in the history: its response is kept with the error. */
export const formatErrorExtra = (turn: ParsedTurn | null, dropped: ModelReply | null): Extra => ({
  interrupt_type: 'FormatError',
  ...(turn && turn.calls.length === 0 ? { n_actions: turn.found.length } : {}),
  ...(dropped ? responseExtra(dropped) : {}),
});

export const observationExtra = (output: string, result: CommandResult, exceptionInfo: string): Extra => ({
  raw_output: output,
  returncode: returnCode(result),
  exception_info: exceptionInfo,
  ...(result.timedOut
    ? { exception_type: 'TimeoutExpired' }
    : result.exitCode === -1 && exceptionInfo !== ''
      ? { exception_type: exceptionType(exceptionInfo) }
      : {}),
});

export const exitExtra = (end: TerminatingException, submission: string): Extra => ({
  exit_status: end.name,
  submission,
  ...(end.name === 'ModelFailed' ? { exception_str: end.message } : {}),
});

/** Raw outputs and responses are in the record; a history that keeps them too would fill the memory of a long run with many slots. */
export function withoutBulk(message: Message): Message {
  const { raw_output: _, response: __, ...extra } = message.extra ?? {};
  return { ...message, extra };
}

/** What the published agents saw of a reply without text and calls. Its cost came by the listener. */
export const EMPTY_REPLY: ModelReply = {
  message: { role: 'assistant', content: null },
  content: '',
  toolCalls: [],
  finishReason: null,
  modelId: null,
  usage: null,
  costNano: 0,
  raw: null,
};
