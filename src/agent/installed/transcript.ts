/**
 * The calls that the gateway answered, as messages and commands of the record. A program runs its commands itself: what it ran is read
 * from its calls of tools, and what came of it from the answers that it sends with a later call.
 */

import type { Message, ToolCall } from '../../model/model.ts';
import type { AgentCallbacks, AgentContext, ProgramCallRecord } from '../contract.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import { textResult } from '../loop/protocol.ts';
import { type InstalledProgram, objectOf } from './launch.ts';

interface Asked {
  readonly command: string;
  readonly step: number;
  readonly index: number;
  readonly at: number;
}

type AddedCall = Pick<GatewayCall, 'newMessages' | 'reply' | 'thread' | 'step' | 'startedAt' | 'endedAt'>;

export interface Transcript {
  readonly messages: readonly Message[];
  add(call: AddedCall): Pick<ProgramCallRecord, 'firstMessage' | 'replyMessage'>;
  /** Tells the commands whose end nobody saw. */
  breakOff(): void;
  /** The same, and the last message. */
  end(exitStatus: string, text: string): void;
}

export function createTranscript(
  callbacks: AgentCallbacks,
  { commandTools, exitCode, outputOf }: Pick<InstalledProgram, 'commandTools' | 'exitCode' | 'outputOf'>,
  context: () => AgentContext,
): Transcript {
  const messages: Message[] = [];
  /** Commands without an answer yet, by the ids of their calls. */
  const open = new Map<string, Asked>();
  const add = (message: Message, extra: Readonly<Record<string, unknown>>, at: number): void => {
    const stamped = { ...message, extra: { ...message.extra, ...extra, timestamp: at / 1000 } };
    messages.push(stamped);
    callbacks.onMessage?.(context(), stamped, messages.length - 1);
  };
  const ran = (asked: Asked, output: string, known: boolean): void => {
    const code = exitCode?.exec(output)?.[1];
    const said = known ? 'the program tells no exit code' : 'the program did not tell what came of it';
    const result = {
      ...textResult(output, code === undefined ? -1 : Number(code)),
      ...(code === undefined && { exceptionInfo: said }),
    };
    const { step, index, command, at } = asked;
    callbacks.onCommand?.(context(), { step, index, command, result, startedAt: at });
  };
  const breakOff = (): void => {
    for (const asked of open.values()) ran(asked, '', false);
    open.clear();
  };
  return {
    messages,
    breakOff,
    add({ newMessages, reply, thread, step, startedAt, endedAt }) {
      const firstMessage = messages.length;
      const extra = thread === 'main' ? {} : { thread };
      for (const message of newMessages) {
        const asked = message.tool_call_id === undefined ? undefined : open.get(message.tool_call_id);
        if (asked) {
          open.delete(message.tool_call_id!);
          const answer = textOf(message.content);
          const output = outputOf?.(answer) ?? answer;
          ran(asked, output, true);
          add(message, { ...extra, raw_output: output }, startedAt);
          continue;
        }
        add(message, extra, message.role === 'assistant' ? endedAt : startedAt);
        for (const [index, call] of (message.tool_calls ?? []).entries()) {
          const command = commandOf(call, commandTools);
          if (command !== null) open.set(call.id, { command, step, index, at: endedAt });
        }
      }
      const answered = reply !== null && newMessages.length > 0;
      return { firstMessage, replyMessage: answered ? messages.length - 1 : null };
    },
    end(exitStatus, text) {
      breakOff();
      add({ role: 'exit', content: text }, { exit_status: exitStatus, submission: '' }, Date.now());
    },
  };
}

/** null: the call runs no command. */
export function commandOf(
  { function: { name, arguments: text } }: ToolCall,
  tools: InstalledProgram['commandTools'],
): string | null {
  if (tools !== 'any' && !tools.includes(name)) return null;
  const args = objectOf(text);
  // What is typed into a program that runs already is under "chars".
  const command = args.command ?? args.cmd ?? args.chars;
  if (typeof command === 'string') return command;
  return Array.isArray(command) ? command.map(String).join(' ') : null;
}

function textOf(content: Message['content']): string {
  if (typeof content === 'string') return content;
  if (content === null) return '';
  const parts = content.map((part) => (part as { text?: unknown } | null)?.text);
  return parts.every((part) => typeof part === 'string') ? parts.join('\n') : JSON.stringify(content);
}
