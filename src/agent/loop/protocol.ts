/**
 * The way from a reply to commands, and from a result to an answer: `bash-block` (one fenced block in the text) and `tool-call`
 * (one or more calls of the bash tool).
 */

import { isRecord } from '../../base/isRecord.ts';
import { strip } from '../../base/python/text.ts';
import { type LinearRegex, linearRegex } from '../../base/regex/linearRegex.ts';
import type { CommandResult } from '../../environment/environment.ts';
import type { Message, ModelReply, ToolCall, ToolSpec } from '../../model/model.ts';
import { BASH_TOOL } from '../tool.ts';

/** The calls of a reply. `error` is set when nothing in it can run. */
export interface ParsedTurn {
  readonly calls: readonly Call[];
  readonly error: string | null;
  /** The blocks of the text, for a template that says how many blocks it found. */
  readonly found: readonly string[];
}

export interface Protocol {
  readonly tools?: readonly ToolSpec[];
  parse(reply: ModelReply): ParsedTurn;
  /** The message that answers a call; without one, a message of the user. */
  answer(content: string, call: Call | null, extra: Readonly<Record<string, unknown>>): Message;
}

/** One capture group around the command. Python's findall with DOTALL is matchAll with the s flag. */
export function bashBlock(actionRegex: string): Protocol {
  const commandsIn = actionPattern(actionRegex);
  return {
    parse(reply) {
      const found = commandsIn(reply.content).map(strip);
      const error = found.length === 1 ? null : `Expected exactly 1 action, found ${found.length}.`;
      return { calls: error ? [] : found.map((command) => ({ command })), error, found };
    },
    answer: (content, _call, extra) => ({ role: 'user', content, extra }),
  };
}

export const NO_TOOL_CALLS =
  'No tool calls found in the response. Every response MUST include at least one tool call.';

export function toolCall(maxCommandBytes: number): Protocol {
  return {
    tools: [BASH_TOOL],
    parse(reply) {
      const calls = reply.toolCalls.map((call) => readToolCall(call, maxCommandBytes));
      const errors = calls.flatMap((call) => ('error' in call ? [call.error] : []));
      const nothing = calls.every((call) => 'error' in call);
      return {
        calls,
        error: calls.length === 0 ? NO_TOOL_CALLS : nothing ? errors.join(' ') : null,
        found: [],
      };
    },
    answer: (content, call, extra) =>
      call?.callId === undefined
        ? { role: 'user', content, extra }
        : { role: 'tool', tool_call_id: call.callId, content, extra },
  };
}

/** Nobody means a reply with more; it costs time and memory in every template that lists them. */
const MAX_FOUND = 10_000;

/** An own pattern reads the beginning of a longer reply: the linear engine takes a third of a microsecond for each character. */
const LONGEST_READ = 256 * 1024;

/** A fence and its language, blank lines, the command, a closing fence: the default and both published versions. */
const PUBLISHED = /^(```[A-Za-z_-]*)\\s\*\\n\((?:\.|\[\\s\\S\])\*\?\)\\n```$/;

const CLOSING = '\n```';
const IS_SPACE = /\s/;

/** The fence and language that one of the published patterns looks for: those are read without a regular expression. */
export const publishedOpening = (actionRegex: string): string | undefined => PUBLISHED.exec(actionRegex)?.[1];

/** The commands that `actionRegex` finds, as matchAll with the flag s would. */
export function actionPattern(actionRegex: string): (text: string) => string[] {
  const opening = publishedOpening(actionRegex);
  if (opening !== undefined) return (text) => fencedBlocks(text, opening);
  let regex: LinearRegex | undefined;
  return (text) => {
    regex ??= linearRegex(actionRegex, 's');
    return regex.all(text.slice(0, LONGEST_READ), MAX_FOUND).map((match) => match.group ?? match.text);
  };
}

/** `opening\s*\n([\s\S]*?)\n```` in one pass. */
function fencedBlocks(text: string, opening: string): string[] {
  const found: string[] = [];
  const closing = forward(text, CLOSING);
  for (let at = text.indexOf(opening); at >= 0 && found.length < MAX_FOUND; ) {
    const from = at + opening.length;
    let end = from;
    while (end < text.length && IS_SPACE.test(text[end]!)) end++;
    const block = blockAfter(text, from, end, closing);
    if (block) found.push(text.slice(block.from, block.to));
    at = text.indexOf(opening, block ? block.to + CLOSING.length : at + 1);
  }
  return found;
}

/** The block behind a fence whose white space is [from, end). The greedy `\s*` takes all lines that leave a closing fence behind them. */
function blockAfter(text: string, from: number, end: number, closing: (from: number) => number) {
  const last = text.lastIndexOf('\n', end - 1);
  if (last < from || end === from) return null;
  const to = closing(last + 1);
  if (to >= 0) return { from: last + 1, to };
  // The last line break itself may be the one before the closing fence.
  const before = last > from ? text.lastIndexOf('\n', last - 1) : -1;
  return before >= from && text.startsWith(CLOSING, last) ? { from: before + 1, to: last } : null;
}

/** indexOf for positions that only grow: a stretch without a hit is searched once. */
function forward(text: string, sought: string): (from: number) => number {
  let known = -2;
  return (from) => {
    if (known === -1 || known >= from) return known;
    known = text.indexOf(sought, from);
    return known;
  };
}

export function readToolCall(call: ToolCall, maxCommandBytes: number): Call {
  const refuse = (error: string): Call => ({ callId: call.id, error });
  const { name, arguments: text } = call.function;
  if (name !== 'bash') return refuse(`Unknown tool '${name}'. The only tool is bash.`);
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch (error) {
    return refuse(`Error parsing tool call arguments: ${(error as Error).message}.`);
  }
  if (!isRecord(args)) return refuse("The arguments must be a JSON object with the field 'command'.");
  const { command } = args;
  if (command === undefined) return refuse("Missing 'command' argument in bash tool call.");
  if (typeof command !== 'string')
    return refuse(`The 'command' argument must be a string, not ${kindOf(command)}.`);
  if (command.includes('\0'))
    return refuse("The 'command' argument contains a NUL byte, which no shell accepts.");
  const bytes = Buffer.byteLength(command);
  if (bytes > maxCommandBytes)
    return refuse(`command is ${megabytes(bytes)}; limit ${megabytes(maxCommandBytes)}.`);
  return { command, callId: call.id };
}

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
const megabytes = (bytes: number): string => {
  const mb = bytes / (1024 * 1024);
  return `${Number.isInteger(mb) ? mb : mb.toFixed(1)} MB`;
};

/** Some servers send no id or the same one twice; every call needs its own to be answered. */
export function withUniqueIds(calls: readonly ToolCall[], step: number): ToolCall[] {
  const seen = new Set<string>();
  return calls.map((call, i) => {
    const id = call.id && !seen.has(call.id) ? call.id : `call_${step}_${i}`;
    seen.add(id);
    return id === call.id ? call : { ...call, id };
  });
}

/** Arguments that the history can carry: the model sees what it wrote, inside JSON, and 10 MB are not sent again with every request. */
export function sendableArguments(text: string, maxBytes: number): string {
  const tooLong = Buffer.byteLength(text) > maxBytes;
  if (!tooLong && isJsonObject(text)) return text;
  const shown = tooLong ? `${text.slice(0, 2000)}… ${text.length - 2000} characters omitted` : text;
  return JSON.stringify({ invalid_arguments: shown });
}
function isJsonObject(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

/** A command to run. */
export interface Action {
  readonly command: string;
  readonly callId?: string;
  /** Python's name for the kind of value that came where text belongs: version 2 lets the engine's command line refuse it. */
  readonly notText?: string;
}
/** A tool call that cannot run, and why: it still needs its answer. */
interface Refused {
  readonly callId: string;
  readonly error: string;
}
export type Call = Action | Refused;
export const isAction = (call: Call): call is Action => 'command' in call;

export function textResult(output: string, exitCode = 0, timedOut = false): CommandResult {
  const raw = Buffer.from(output);
  return {
    output,
    raw,
    exitCode,
    timedOut,
    totalBytes: raw.length,
    omittedBytes: 0,
    replacedBytes: 0,
    durationMs: 0,
    oomKilled: false,
    transport: 'local',
    exceptionInfo: '',
  };
}
