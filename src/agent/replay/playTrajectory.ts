/**
 * Plays a recorded trajectory through the agent that `run` uses and compares every message. Replies and command outputs come from the
 * recording (or the commands run for real in a given environment); all other text is rendered anew.
 */

import { z } from 'zod';
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { timestampOrNull } from '../../base/plausible.ts';
import { contentText } from '../../base/text/contentText.ts';
import { completeEnvironment } from '../../environment/capabilities.ts';
import type { CommandResult, Environment } from '../../environment/environment.ts';
import { readCompletion } from '../../model/dialects/completion.ts';
import { storedReply } from '../../model/dialects/everyDialect.ts';
import type { Model, ModelReply, ToolCall } from '../../model/model.ts';
import { pricesSchema } from '../../model/modelConfig.ts';
import { costOf, isFreeName } from '../../model/prices.ts';
import { type NanoDollars, nanoOrNull, nanoToDollars, plausibleNano } from '../../money.ts';
import { render, type Vars } from '../../template/render.ts';
import type { AgentConfig } from '../agentConfig.ts';
import { behaviourOf } from '../compat/behaviour.ts';
import type { AgentResult } from '../contract.ts';
import { createAgent } from '../loop/agent.ts';
import { timeExceeded } from '../loop/deadline.ts';
import { type Action, isAction, type Protocol, textResult } from '../loop/protocol.ts';
import { SUBMIT_MARKERS } from '../loop/submission.ts';
import { templatesOf } from '../loop/templates.ts';
import { type RecordedMessage, type RecordedTrajectory, readRecording } from './readRecording.ts';

interface Difference {
  /** Index of the message, or what differs at the end. */
  readonly where: number | 'exit_status' | 'submission' | 'cost' | 'replay';
  readonly recorded: string;
  readonly replayed: string;
}

export interface ReplayResult {
  readonly instance_id: string;
  readonly messages: { readonly equal: number; readonly total: number };
  readonly exit_status_equal: boolean;
  readonly submission_equal: boolean;
  readonly cost_equal: boolean;
  readonly differences: readonly Difference[];
  /** Observations whose middle the recording left out; they were played with as many other characters. */
  readonly elided: readonly { readonly message: number; readonly characters: number }[];
  /** Messages whose reply the recording does not hold; one that earns the same answer stood in. */
  readonly standIns: readonly number[];
}

interface PlayOptions {
  /** Runs the recorded commands for real instead of answering with recorded outputs. */
  readonly environment?: Environment;
}

/** Dollars; the sum of many calls may differ in its last digits. */
const SAME_COST = 1e-9;

export const isEqual = (result: ReplayResult): boolean => result.differences.length === 0;

export async function replayTrajectory(json: unknown, options: PlayOptions = {}): Promise<ReplayResult> {
  const recording = readRecording(json);
  const script = scriptOf(recording);
  const played = await play(recording, script, options.environment);
  return compare(recording, script, played);
}

interface Played {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly result: AgentResult | null;
  readonly failure: string | null;
}

class RecordingEnded extends Error {}

async function play(
  recording: RecordedTrajectory,
  script: Script,
  real: Environment | undefined,
): Promise<Played> {
  const messages: Record<string, unknown>[] = [];
  let asked = 0;
  const model: Model = {
    name: recording.modelName,
    templateVars: () => recording.modelVars,
    async query() {
      const reply: ModelReply | undefined = script.replies[asked++];
      if (!reply) throw new RecordingEnded();
      return { success: true, result: reply, message: 'recorded' };
    },
  };
  const agent = createAgent({
    instanceId: recording.instanceId,
    model,
    environment: real ?? recordedEnvironment(recording, script),
    config: recording.config,
    callbacks: { onMessage: (_ctx, message) => messages.push(message) },
    // A recorded wall-clock end comes when the replies are used up, and never before.
    now: () =>
      recording.exitStatus === 'TimeExceeded' && asked >= script.replies.length ? Number.MAX_VALUE : 0,
  });
  try {
    return { messages, result: await agent.run(script.task), failure: null };
  } catch (error) {
    const ended = error instanceof RecordingEnded;
    return { messages, result: null, failure: ended ? null : (error as Error).message };
  }
}

function recordedEnvironment(recording: RecordedTrajectory, script: Script): Environment {
  let next = 0;
  return completeEnvironment({
    info: { kind: 'recorded', transport: 'local', history: 'absent', notes: [] },
    templateVars: () => recording.environmentVars,
    async execute() {
      const result = script.results[next++];
      if (result) return result;
      if (recording.exitStatus === 'TimeExceeded')
        throw timeExceeded(recording.config.wall_time_limit_seconds);
      throw new RecordingEnded();
    },
    capturePatch: async () => ({ patch: new Uint8Array(), state: 'empty', warnings: [] }),
    putFile: async () => {},
    getFile: async () => new Uint8Array(),
    close: async () => {},
  });
}

function compare(recording: RecordedTrajectory, script: Script, played: Played): ReplayResult {
  const differences: Difference[] = script.notes.map((note) => ({
    where: 'replay',
    recorded: note,
    replayed: '',
  }));
  if (played.failure !== null)
    differences.push({ where: 'replay', recorded: '', replayed: `the replay failed: ${played.failure}` });
  const outside = !OWN_ENDS.has(recording.exitStatus);
  const recorded = outside ? recording.messages.filter((m) => m.role !== 'exit') : recording.messages;
  const total = Math.max(recorded.length, played.messages.length);
  let equal = 0;
  for (let i = 0; i < total; i++) {
    const [a, b] = [comparable(recorded[i]), comparable(played.messages[i])];
    if (a === b) equal += 1;
    else differences.push({ where: i, recorded: a, replayed: b });
  }
  const { result } = played;
  const lastSays = recording.messages.at(-1)?.extra?.exit_status;
  const ended = typeof lastSays === 'string' ? lastSays : recording.exitStatus;
  const status = result?.exitStatus ?? (outside && played.failure === null ? ended : '');
  const submission = result?.submission ?? '';
  // Version 1 kept the text of an exception where the submission belongs.
  const handedIn = outside && recording.format === 'mini-swe-agent-1' ? '' : recording.submission;
  const cost =
    result === null || result.costNano === null ? sumOfReplies(script) : nanoToDollars(result.costNano);
  const { costDollars } = recording;
  const costEqual =
    cost === null || costDollars === null ? cost === costDollars : Math.abs(cost - costDollars) <= SAME_COST;
  if (status !== recording.exitStatus)
    differences.push({ where: 'exit_status', recorded: recording.exitStatus, replayed: status });
  if (submission !== handedIn)
    differences.push({ where: 'submission', recorded: handedIn, replayed: submission });
  if (!costEqual)
    differences.push({
      where: 'cost',
      recorded: String(costDollars ?? 'unknown'),
      replayed: String(cost ?? 'unknown'),
    });
  return {
    instance_id: recording.instanceId,
    messages: { equal, total },
    exit_status_equal: status === recording.exitStatus,
    submission_equal: submission === handedIn,
    cost_equal: costEqual,
    differences,
    elided: script.elided,
    standIns: script.standIns,
  };
}

function sumOfReplies(script: Script): number | null {
  let total = 0;
  for (const { costNano } of script.replies) {
    if (costNano === null) return null;
    total += costNano;
  }
  return nanoToDollars(total);
}

/** The part of a message that must be the same: everything but bookkeeping, and fields that are not there or null, which clients add and drop. */
function comparable(message: RecordedMessage | Readonly<Record<string, unknown>> | undefined): string {
  if (!message) return '(no message)';
  const { extra: _, timestamp: __, native: ___, ...own } = message as Record<string, unknown>;
  const said = Array.isArray(own.tool_calls) ? { ...own, tool_calls: own.tool_calls.map(calledWith) } : own;
  const kept = Object.entries(said).filter(([, value]) => value !== null && value !== undefined);
  return JSON.stringify(Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1))), sortedKeys);
}
/** Clients add to a call where in the reply it stood, and what its provider signed. */
function calledWith(call: unknown): unknown {
  const { id, function: called } = (call ?? {}) as Record<string, unknown>;
  return { id, function: called };
}
const sortedKeys = (_key: string, value: unknown): unknown =>
  isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;

// From a recording to what a replay feeds: the task, the replies, and for each command its output. Text that the agent wrote is never fed back.

interface Script {
  readonly task: string;
  readonly replies: readonly ModelReply[];
  /** The results in the order in which the commands run. */
  readonly results: readonly CommandResult[];
  readonly elided: readonly { readonly message: number; readonly characters: number }[];
  /** Messages that answer a reply missing from the recording: a stand-in that gets the same answer replaces it. */
  readonly standIns: readonly number[];
  /** Texts that could not be turned back. */
  readonly notes: readonly string[];
}

function scriptOf(recording: RecordedTrajectory): Script {
  const { config, messages } = recording;
  const templates = templatesOf(config);
  const behaviour = behaviourOf(config.compat);
  const protocol = behaviour.protocol(config, recording.environmentVars);
  const vars = varsOf(recording);
  const inverters = {
    observation: observationInverter(templates.observation, vars),
    timeout: timeoutInverter(templates.timeout, vars),
  };
  const replies: ModelReply[] = [];
  const results: CommandResult[] = [];
  const elided: { message: number; characters: number }[] = [];
  const standIns: number[] = [];
  const notes: string[] = [];

  const task = invertValue(templates.instance, textOf(messages[1]), (mark) => ({ ...vars, task: mark }));
  if (task === null) notes.push('message 1 cannot have come from the instance template');

  for (let i = 2; i < messages.length; i++) {
    const message = messages[i] as RecordedMessage;
    const reply = replyOf(message, recording);
    if (!reply) continue;
    replies.push(reply);
    if (message.role !== 'assistant' && reply.raw === null && message.extra?.model_response === undefined)
      standIns.push(i);
    if (message.role !== 'assistant') continue;
    const actions = protocol.parse(reply).calls.filter(isAction);
    const answers = answersAfter(messages, i, protocol);
    const isLast = messages.findLastIndex((m) => m.role === 'assistant') === i;
    for (const [n, action] of actions.entries()) {
      // A command that never starts needs no result: the agent gives the same one again.
      if (behaviour.refused(action)) continue;
      const at = answers[n];
      // The attempt ended while this command ran: nobody saw what came of it.
      if (at === undefined && isLast && cutShort(recording)) break;
      const result =
        at === undefined ? null : resultOf(messages[at] as RecordedMessage, action, recording, inverters);
      if (result) {
        if (result.elided > 0) elided.push({ message: at as number, characters: result.elided });
        results.push(result.result);
      } else if (submitsHere(recording, i, actions, n, answers.length)) results.push(submitting(recording));
      else {
        if (at !== undefined) notes.push(`message ${at} cannot have come from the templates`);
        results.push(textResult('', 0));
      }
    }
  }
  return { task: task ?? '', replies, results, elided, standIns, notes };
}

/** The attempt was ended by the wall-clock limit, or from outside the agent. */
const cutShort = ({ exitStatus }: RecordedTrajectory): boolean =>
  exitStatus === 'TimeExceeded' || !OWN_ENDS.has(exitStatus);

/** Ends that the agent itself knows; any other came from outside, and there is nothing to play. */
const OWN_ENDS: ReadonlySet<string> = new Set([
  'Submitted',
  'LimitsExceeded',
  'TimeExceeded',
  'RepeatedFormatError',
  'EmptyResponsesExceeded',
  'CommandTimeoutsExceeded',
]);

const textOf = (message: RecordedMessage | undefined): string => contentText(message?.content);

const varsOf = ({ config, environmentVars, modelVars }: RecordedTrajectory): Vars => ({
  ...config,
  ...environmentVars,
  ...modelVars,
  n_model_calls: 0,
  model_cost: 0,
  elapsed_seconds: 0,
});

/**
 * The provider's reply, read as `run` reads it, where the recording kept that: a message that was changed since is then seen. Of an
 * assistant message, or of the format error in which version 2 keeps the reply that it dropped.
 */
function replyOf(message: RecordedMessage, { config, modelVars }: RecordedTrajectory): ModelReply | null {
  const { response, interrupt_type, cost, model_response: text } = message.extra ?? {};
  const kept = behaviourOf(config.compat).keepMalformedReply;
  const dropped = !kept && message.role === 'user' && interrupt_type === 'FormatError';
  if (message.role !== 'assistant' && !dropped) return null;
  const recorded = storedReply(response);
  const read = readCompletion(recorded?.body);
  const { extra: _, timestamp: __, ...own } = message as Record<string, unknown>;
  const said: Record<string, unknown> =
    read.kind === 'reply'
      ? read.reply.message
      : (recorded?.message ??
        (dropped ? { content: typeof text === 'string' ? text : null, ...standIn(message, config) } : own));
  return {
    message: { ...said, role: 'assistant', content: (said.content ?? null) as string | null },
    content: contentText(said.content),
    toolCalls: (said.tool_calls ?? []) as ToolCall[],
    finishReason: recorded?.finishReason ?? null,
    modelId: null,
    usage: null,
    // Before 2.4.6 nobody counted what a malformed reply had cost.
    costNano: dropped && cost === undefined ? 0 : recordedCost(response, modelVars, cost),
    raw: response ?? null,
  };
}

/**
 * Before 2.3.1 the recording kept only the answer to a malformed reply. A reply without tool calls needs nothing more; otherwise a call is made up.
 */
function standIn(message: RecordedMessage, config: AgentConfig): { tool_calls?: ToolCall[] } {
  if (config.protocol !== 'tool-call') return {};
  const template = templatesOf(config).format_error;
  const error = invertValue(template, textOf(message), (mark) => ({
    error: mark,
    actions: [],
    finish_reason: null,
    has_tool_calls: true,
  }));
  const told = /^(?:Unknown tool '(.*)'\.)?(Missing 'command' argument in bash tool call\.)?$/s.exec(
    error ?? '',
  );
  if (!error || !told) return {};
  const [, name = 'bash', missing] = told;
  const args = missing ? '{}' : '{"command":""}';
  return { tool_calls: [{ id: 'stand-in', type: 'function', function: { name, arguments: args } }] };
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
  recording: RecordedTrajectory,
  inverters: { readonly observation: InvertOutput; readonly timeout: InvertOutput },
): { result: CommandResult; elided: number } | null {
  const {
    raw_output: raw,
    returncode,
    exception_type: exception,
    exception_info: info,
  } = message.extra ?? {};
  if (typeof raw === 'string' && (typeof returncode === 'number' || returncode === null))
    return {
      result: {
        ...textResult(raw, returncode ?? -1, exception === 'TimeoutExpired'),
        exceptionInfo: String(info ?? ''),
      },
      elided: 0,
    };
  const isLast = message === recording.messages.at(-1);
  if (isLast && recording.exitStatus === 'Submitted') return null;
  const text = textOf(message);
  const observed = inverters.observation(text, action.command);
  if (observed) return { result: textResult(observed.output, observed.returncode), elided: observed.elided };
  const killed = inverters.timeout(text, action.command);
  return killed && { result: textResult(killed.output, -1, true), elided: killed.elided };
}

/** The command of the last turn that handed in the work: the one that says the marker, else the first without an answer. */
function submitsHere(
  { messages, exitStatus }: RecordedTrajectory,
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

/** The work that was handed in, as the last message has it; the recorded submission is what it is compared with. */
const submitting = ({ messages }: RecordedTrajectory): CommandResult =>
  textResult(`${SUBMIT_MARKERS[0]}\n${textOf(messages.at(-1))}`, 0);

interface PriceRow {
  /** The day from which the row holds; newest first. */
  readonly since: string;
  /** Dollars per million tokens. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** Rows for published recordings whose replies carry no cost. */
const ROWS: Readonly<Record<string, readonly PriceRow[]>> = {
  'google/gemini-3-pro-preview': [{ since: '2025-11-18', input: 2, cached: 0.125, output: 12 }],
};

const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);

/**
 * `stated` is what format 1.1 keeps beside a reply: the agent's own count, where there is no row. Without that the prices that a run of
 * ours had in its configuration, and the table that runs go by. null when nobody knows.
 */
function recordedCost(
  response: unknown,
  model: Readonly<Record<string, unknown>>,
  stated?: unknown,
): NanoDollars | null {
  const modelName = String(model.model_name ?? '');
  const usage = recordOf(recordOf(response).usage);
  if (typeof usage.cost === 'number') return plausibleNano(typeof stated === 'number' ? stated : usage.cost);
  const at = new Date((timestampOrNull(recordOf(response).created) ?? 0) * 1000);
  const created = at.toISOString().slice(0, 10);
  const row = ROWS[modelName.replace(/^@/, '')]?.find(({ since }) => since <= created);
  if (!row || typeof usage.prompt_tokens !== 'number') {
    if (typeof stated === 'number') return plausibleNano(stated);
    if (isFreeName(modelName)) return 0;
    const prices = z.union([pricesSchema, z.literal('free')]).safeParse(model.prices);
    const config = { model_name: modelName, ...(prices.success ? { prices: prices.data } : {}) };
    return response === null || response === undefined
      ? null
      : costOf(config, recordOf(response).usage, at).costNano;
  }
  const cached = number(recordOf(usage.prompt_tokens_details).cached_tokens);
  const fresh = number(usage.prompt_tokens) - cached;
  // Dollars per million tokens are thousandths of nano-dollars per token times a million: multiply first, so that it stays exact.
  return nanoOrNull(
    Math.round(
      (fresh * row.input + cached * row.cached + number(usage.completion_tokens) * row.output) * 1000,
    ),
  );
}

// Turns rendered text back into what was rendered: the template is rendered with marks in place of values, and the text between the marks is what
// the recording must have around the values. Nothing knows a template by name.

const MARK = '\uE000\uE001\uE000';
/** A return code that no program gives. */
const CODE = 918_273_645;
const HEAD = '\uE002'.repeat(5000);
const TAIL = '\uE003'.repeat(5000);
const ELIDED = 31_337;

interface RecordedOutput {
  readonly output: string;
  readonly returncode: number;
  /** Characters that the recording left out of the middle. */
  readonly elided: number;
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** One value that a template shows, from a rendered text; null when the text cannot have come from it. */
export function invertValue(template: string, text: string, varsWith: (mark: string) => Vars): string | null {
  const parts = marked(template, varsWith(MARK))?.split(MARK);
  if (!parts || parts.length < 2) return null;
  // Each mark stands for the same value, so its length follows from that of the text.
  const length = (text.length - parts.join('').length) / (parts.length - 1);
  if (length < 0 || !Number.isInteger(length)) return null;
  const value = text.slice(parts[0]!.length, parts[0]!.length + length);
  return parts.join(value) === text ? value : null;
}

type InvertOutput = (text: string, action: string) => RecordedOutput | null;

/** Variables with which a template of outputs is rendered; `returncode` where it shows one. */
type VarsOf = (output: string, action: string, returncode: number) => Vars;

/** Output and return code behind an observation, in the short or the elided form of its template. */
export const observationInverter = (template: string, vars: Vars): InvertOutput =>
  outputInverter(template, (output, action, returncode) => ({
    ...vars,
    output: { exception_info: '', total_bytes: 0, omitted_bytes: 0, output, returncode, action },
  }));

/** The same for the message about a command that timed out. */
export const timeoutInverter = (template: string, vars: Vars): InvertOutput =>
  outputInverter(template, (output, action) => ({ ...vars, action: { action, command: action }, output }));

/** The patterns are made once. */
function outputInverter(template: string, varsOf: VarsOf): InvertOutput {
  const showsAction = /\baction\b/.test(template);
  const known = new Map<string, Patterns>();
  return (text, action) => {
    const key = showsAction ? action : '';
    const patterns = known.get(key) ?? patternsOf(template, (output) => varsOf(output, key, CODE));
    known.set(key, patterns);
    const short = patterns.short?.exec(text)?.groups;
    if (short) {
      const found = { output: short.output ?? '', returncode: Number(short.code ?? 0) };
      // Long outputs have their own branch; a text that only looks like the short one is not from there.
      if (marked(template, varsOf(found.output, action, found.returncode)) === text)
        return { ...found, elided: 0 };
    }
    // To compile a pattern of ten thousand characters takes a tenth of a second, and a shorter text cannot fit it.
    const long = text.length < HEAD.length + TAIL.length ? undefined : patterns.long?.exec(text)?.groups;
    if (!long) return null;
    const { head = '', tail = '', elided = '0', code = '0' } = long;
    // The middle is gone: the same number of characters stands in for it.
    const output = head + 'x'.repeat(Number(elided)) + tail;
    return { output, returncode: Number(code), elided: Number(elided) };
  };
}

interface Patterns {
  readonly short: RegExp | null;
  readonly long: RegExp | null;
}

function patternsOf(template: string, varsWith: (output: string) => Vars): Patterns {
  const short = marked(template, varsWith(MARK));
  const long = marked(template, varsWith(HEAD + 'm'.repeat(ELIDED) + TAIL));
  return {
    short: short === null ? null : patternOf(short, [[MARK, '([\\s\\S]*)', 'output']]),
    // The u flag makes a dot and a class code points, as Python's slices count them.
    long:
      // A template that shows the output in another spelling (the built-in one of version 1 prints a Python dict) has no such form.
      long === null || !long.includes(HEAD)
        ? null
        : patternOf(long, [
            [HEAD, '([\\s\\S]{5000})', 'head'],
            [TAIL, '([\\s\\S]{5000})', 'tail'],
            [String(ELIDED), '(\\d+)', 'elided'],
          ]),
  };
}

/** A rendering with marks as a pattern; each mark becomes a named group, the return code one too. */
function patternOf(rendered: string, marks: readonly (readonly [string, string, string])[]): RegExp {
  let pattern = literal(rendered);
  for (const [mark, group, name] of [...marks, [String(CODE), '(-?\\d+)', 'code'] as const])
    pattern = pattern.replace(mark, group.replace('(', `(?<${name}>`));
  return new RegExp(`^${pattern}$`, 'u');
}

function marked(template: string, vars: Vars): string | null {
  try {
    return render(template, vars);
  } catch {
    return null;
  }
}
