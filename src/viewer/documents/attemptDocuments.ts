/** Documents about one attempt: its head and outline, its messages chunk by chunk, its verdicts with their test output. */

import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { errorText } from '../../base/text/errorText.ts';
import { shownExit } from '../../base/text/exitCodeTold.ts';
import { namesOfMessages, threadsOf } from '../../formats/trajectory.ts';
import type { Store } from '../../store/open.ts';
import {
  answersOf,
  type CommandRow,
  commandHeads,
  commandsBetween,
  engineStays,
  type MessageHead,
  type MessageRow,
  messageHeads,
  messagesBetween,
  phaseRowsOf,
} from '../../store/records/attemptBodies.ts';
import { connectionLinesOf } from '../../store/records/connections.ts';
import { evaluationById, evaluationsOf, type ShownEvaluation } from '../../store/records/evaluations.ts';
import {
  type CallRow,
  callsOf,
  callsOfProgram,
  gradingMoney,
  type ProgramCallFacts,
  programCallFacts,
} from '../../store/records/modelCalls.ts';
import { trialHead } from '../../store/records/trialPages.ts';
import { type AttemptRow, attemptById, attemptsOf } from '../../store/records/trials.ts';
import { answersByCode, parts, type StepAction, type StepFacts, stepFacts } from '../steps/stepFacts.ts';
import { MESSAGES_PER_CHUNK } from './documents.ts';
import { keptWork } from './keptWork.ts';
import {
  lenientJson,
  readBytes,
  readEvidence,
  readFlags,
  readMessage,
  readNumbers,
  readTexts,
} from './lenient.ts';
import type { ViewedRecord } from './trialDocuments.ts';
import { whyOf } from './why.ts';

/** The fields of a dataset row that the viewer shows. */
const rowSchema = z.object({
  problem_statement: z.string().catch(''),
  patch: z.string().catch(''),
  test_patch: z.string().catch(''),
  FAIL_TO_PASS: z.array(z.string()).catch([]),
  PASS_TO_PASS: z.array(z.string()).catch([]),
});

const readRow = (text: string): z.infer<typeof rowSchema> =>
  rowSchema.catch(rowSchema.parse({})).parse(lenientJson(text));

/** Longest test output sent to a page; the middle is left out and counted. */
const LOG_LIMIT = 2_000_000;

export type AttemptDocument = NonNullable<ReturnType<typeof attemptDocument>>;
export type OutlineRow = AttemptDocument['outline'][number];
/** A conversation of an agent that is a program: its own, or that of a sub-agent or a title. */
export type ThreadDocument = AttemptDocument['threads'][number];

export function attemptDocument(record: ViewedRecord, attemptId: number) {
  const { db } = record;
  const attempt = attemptById(db, attemptId);
  const head = attempt && trialHead(db, attempt.trial_id);
  if (!attempt || !head) return undefined;
  const row = readRow(head.row);
  const { outline, threads } = outlineOf(db, attemptId);
  const engines = engineStays(db, attemptId);
  const judge = gradingMoney(db, attemptId);
  const connections = connectionLinesOf(db, attemptId);
  const evaluations = evaluationsOf(db, head.trial)
    .map((evaluation) => evaluationSummary(evaluation, attempt))
    .map((summary, i, list) => ({
      ...summary,
      current: summary.current && !list.slice(i + 1).some((later) => later.current),
    }));
  const ended = {
    state: attempt.state,
    exitReason: attempt.exit_reason,
    exitClass: attempt.exit_class,
    exitDetail: attempt.exit_detail,
    error: attempt.error_message,
  };
  const current = evaluations.find((evaluation) => evaluation.current);
  const patch = attempt.model_patch ?? '';
  const captured = readBytes(attempt.captured_patch);
  const kept = keptWork({ patch, captured, evaluations });
  return {
    run: { id: head.run_id, name: head.run, imported: head.imported === 1 },
    trial: {
      id: head.trial,
      arm: head.arm,
      model: head.model,
      epoch: head.epoch,
      state: head.state,
      notRunReason: head.not_run_reason,
    },
    instance: {
      instanceId: head.instance_id,
      repo: head.repo,
      difficulty: head.difficulty,
      image: head.image,
      problem: row.problem_statement,
      goldPatch: row.patch,
      testPatch: row.test_patch,
      failToPass: row.FAIL_TO_PASS,
      passToPass: row.PASS_TO_PASS.length,
    },
    attempts: attemptsOf(db, head.trial).map((a) => ({
      id: a.id,
      number: a.number,
      final: a.id === head.final_attempt_id,
      state: a.state,
      exitReason: a.exit_reason,
      exitClass: a.exit_class,
      steps: a.steps,
      elapsedMs: a.elapsed_ms,
      startedAt: a.started_at,
      costNano: record.money(a.id).costNano,
    })),
    attempt: {
      id: attempt.id,
      number: attempt.number,
      ...ended,
      slot: attempt.slot,
      startedAt: attempt.started_at,
      endedAt: attempt.ended_at,
      exitStatus: attempt.exit_status,
      steps: attempt.steps,
      elapsedMs: attempt.elapsed_ms,
      workingMs: attempt.working_ms,
      history: attempt.history,
      transport: attempt.transport,
      imageDigest: attempt.image_digest,
      oomKills: attempt.oom_kills,
      patchSource: attempt.patch_source,
      patchState: attempt.patch_state,
      notes: readTexts(attempt.notes),
      flags: readFlags(attempt.suspicion),
      money: record.money(attempt.id),
      program: readEvidence(attempt.error_evidence),
      /** Only where its tests asked a model. */
      ...(judge && { judge }),
      /** Only where its containers reach hosts of a list. */
      ...(connections.length > 0 && { connections }),
      /** Only of a run on several engines. */
      ...(engines.length > 0 && { engines }),
    },
    patch,
    why: whyOf(head.run, ended, patch, current && evaluationDocument(db, current.id), kept),
    submission: readBytes(attempt.submission),
    captured,
    phases: phaseRowsOf(db, attemptId),
    outline,
    /** The agent's own first; empty for the built-in agent. */
    threads,
    chunks: Math.ceil(((outline.at(-1)?.seq ?? -1) + 1) / MESSAGES_PER_CHUNK),
    evaluations,
  };
}

function range(chunk: number): [from: number, to: number] {
  return [chunk * MESSAGES_PER_CHUNK, (chunk + 1) * MESSAGES_PER_CHUNK];
}

export type MessageChunk = ReturnType<typeof messageChunk>;
export type MessageDocument = MessageChunk['messages'][number];

export function messageChunk(db: Store, attemptId: number, chunk: number) {
  const [from, to] = range(chunk);
  const commands = Map.groupBy(commandsBetween(db, attemptId, from, to), (command) => command.message_seq);
  return {
    attempt: attemptId,
    from,
    messages: messagesBetween(db, attemptId, from, to).map((row) =>
      messageDocument(row, commands.get(row.seq) ?? []),
    ),
  };
}

function messageDocument(row: MessageRow, commands: readonly CommandRow[]) {
  return {
    seq: row.seq,
    role: row.role,
    content: row.content,
    ...readMessage(row.data),
    commands: commands.map((command) => {
      const output = command.output.toString('utf8');
      const start = output === '' ? -1 : row.content.indexOf(output);
      const at: [start: number, end: number] | null = start < 0 ? null : [start, start + output.length];
      return {
        command: command.command,
        // The observation usually repeats the output word for word: then it is sent once, and `at` says where.
        output: at ? null : output,
        at,
        exitCode: command.exit_code,
        timedOut: command.timed_out === 1,
        oomKilled: command.oom_killed === 1,
        durationMs: command.duration_ms,
        totalBytes: command.total_bytes,
        omittedBytes: command.omitted_bytes,
      };
    }),
  };
}

export type RawChunk = ReturnType<typeof rawChunk>;
/** Both in one file of a bundle. */
export interface PackedChunk {
  attempt: number;
  from: number;
  /** `value`: the parsed data, whose texts then repeat those of the message; `data` where it is no JSON. A large bundle has none. */
  pairs: {
    message: MessageDocument;
    raw?: { seq: number; createdAt: string; value?: unknown; data?: string };
  }[];
}

export function rawChunk(db: Store, attemptId: number, chunk: number) {
  const [from, to] = range(chunk);
  return {
    attempt: attemptId,
    from,
    messages: messagesBetween(db, attemptId, from, to).map((row) => ({
      seq: row.seq,
      createdAt: row.created_at,
      data: row.data,
    })),
  };
}

function evaluationSummary(
  row: Omit<ShownEvaluation, 'log'>,
  attempt: Pick<AttemptRow, 'patch_sha256'> | undefined,
) {
  return {
    id: row.id,
    attempt: row.attempt_id,
    harness: row.harness,
    outcome: row.outcome,
    resolved: row.resolved,
    resolvedStrict: row.resolved_strict,
    ...(row.reward !== null && { reward: row.reward, rewards: readNumbers(row.rewards) }),
    applyMethod: row.apply_method,
    exitCode: row.exit_code,
    infraReason: row.infra_reason,
    error: row.error_message,
    network: row.network,
    source: row.source,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    flags: readFlags(row.suspicion),
    /** The verdict that counts: of the patch this attempt predicts. */
    current: attempt !== undefined && row.patch_sha256 === attempt.patch_sha256,
  };
}

export type EvaluationDocument = NonNullable<ReturnType<typeof evaluationDocument>>;

export function evaluationDocument(db: Store, id: number) {
  const row = evaluationById(db, id);
  if (!row) return undefined;
  const attempt = row.attempt_id === null ? undefined : attemptById(db, row.attempt_id);
  const whole = unpack(row.log);
  const omitted = whole === null ? 0 : Math.max(0, whole.length - LOG_LIMIT);
  const half = LOG_LIMIT / 2;
  const log =
    whole === null || omitted === 0
      ? whole
      : `${whole.slice(0, half)}\n… ${omitted} characters left out …\n${whole.slice(-half)}`;
  return {
    ...evaluationSummary(row, attempt),
    tests: testsOf(row.report, log),
    report: row.report,
    log,
    logOmitted: omitted,
  };
}

/** Logs are gzip. An imported one may be plain text. A broken one is reported as broken. */
function unpack(log: Buffer | null): string | null {
  if (log === null) return null;
  if (log[0] !== 0x1f || log[1] !== 0x8b) return log.toString('utf8');
  try {
    return gunzipSync(log, { maxOutputLength: 256 * 1024 * 1024 }).toString('utf8');
  } catch (error) {
    return `(this test output cannot be unpacked: ${errorText(error)})`;
  }
}

/** The tries behind the answers, by the messages that they are. */
type Behind = ReadonlyMap<number, readonly CallRow[]>;

/** The n-th message of the built-in agent's model is the n-th step that was answered. */
function behindSteps(db: Store, attemptId: number, heads: readonly MessageHead[]): Behind {
  const byStep = Map.groupBy(callsOf(db, attemptId), (call) => call.step);
  const answered = [...byStep.values()].filter((calls) => calls.some((call) => call.state === 'ok'));
  const turns = heads.filter(({ role }) => role === 'assistant');
  return new Map(turns.map(({ seq }, turn) => [seq, answered[turn] ?? []]));
}

/** A program says which message is the answer of which call. */
const behindCalls = (program: readonly ProgramCallFacts[], byCall: Map<number, readonly CallRow[]>): Behind =>
  new Map(
    program.flatMap(({ call, reply_message }) =>
      reply_message === null ? [] : [[reply_message, byCall.get(call) ?? []] as const],
    ),
  );

function threadDocuments(
  heads: readonly MessageHead[],
  program: readonly ProgramCallFacts[],
  byCall: Map<number, readonly CallRow[]>,
) {
  if (program.length === 0) return [];
  return threadsOf(heads, program).map(({ name, label, calls, messages }) => {
    const rows = calls.flatMap((call) => byCall.get(call) ?? []);
    const costs = rows.flatMap(({ cost_nano }) => cost_nano ?? []);
    return {
      name,
      label,
      calls: calls.length,
      messages: messages.length,
      costNano: costs.length > 0 ? costs.reduce((sum, cost) => sum + cost, 0) : null,
      unknownCalls: rows.filter((row) => row.state !== 'in_flight' && row.cost_nano === null).length,
    };
  });
}

const SHELLS = new Set(['bash', 'sh', 'shell', 'mswea_bash_command']);

/** Thoughts quote code too: what is for the shell is the action; where nothing says so, the last block. */
function fencedActions(content: string): StepAction[] {
  const blocks = parts(content).filter((part) => part.kind === 'code');
  const own = blocks.filter(({ language }) => SHELLS.has(language ?? ''));
  return (own.length > 0 ? own : blocks.slice(-1)).map(({ text }) => ({ name: 'bash', text }));
}

/** The commands of an attempt by the message that shows them; those of none by null. */
type Commands = ReadonlyMap<number | null, readonly { command: string }[]>;

/** The kind of each answer: by the commands that ran after it, else by what it asks for. */
function actionsBehind(db: Store, attemptId: number, heads: readonly MessageHead[], commands: Commands) {
  const actionsOf = (seq: number | null): StepAction[] =>
    (commands.get(seq) ?? []).map(({ command }) => ({ name: 'bash', text: command }));
  const facts = new Map<number, { does: StepFacts; asks: boolean }>();
  const note = (seq: number, own: readonly StepAction[]) =>
    facts.set(seq, { does: stepFacts(own), asks: answersByCode(own.at(-1)?.text ?? '') });
  if ([...commands.keys()].every((seq) => seq === null)) {
    for (const { seq, content, data } of answersOf(db, attemptId)) {
      const { toolCalls } = readMessage(data);
      note(seq, toolCalls.length > 0 ? toolCalls : fencedActions(content));
    }
    return facts;
  }
  let answer: number | null = null;
  const actions = new Map<number, StepAction[]>();
  for (const { seq, role } of heads) {
    if (role === 'assistant') answer = seq;
    if (answer !== null) actions.set(answer, [...(actions.get(answer) ?? []), ...actionsOf(seq)]);
  }
  // The command that hands in the work ends the attempt: no observation shows it.
  if (answer !== null && actions.get(answer)?.length === 0) actions.set(answer, actionsOf(null));
  for (const [seq, own] of actions) note(seq, own);
  return facts;
}

/** A reply of the model may quote an exit code. */
const observes = (role: string): boolean => role === 'user' || role === 'tool';

/** Joins messages, calls and commands into one light row a message. Commands say themselves which observation shows them. */
function outlineOf(db: Store, attemptId: number) {
  const heads = messageHeads(db, attemptId);
  const program = programCallFacts(db, attemptId);
  const rows = program.length > 0 ? callsOfProgram(db, attemptId) : [];
  const byCall: Map<number, readonly CallRow[]> = Map.groupBy(rows, ({ call }) => call);
  const behind = program.length > 0 ? behindCalls(program, byCall) : behindSteps(db, attemptId, heads);
  const commands = Map.groupBy(commandHeads(db, attemptId), (command) => command.message_seq);
  const does = actionsBehind(db, attemptId, heads, commands);
  const names = namesOfMessages(heads, program);
  // An import knows no times of messages and gives all of them that of the attempt.
  const timed = heads.some((head) => head.created_at !== heads[0]!.created_at);
  let step: number | null = null;
  let turn = 0;
  let asks = false;
  const outline = heads.map((message) => {
    const calls = behind.get(message.seq) ?? [];
    if (message.role === 'assistant') {
      turn += 1;
      // A program may send an answer of before again.
      step = calls[0]?.step ?? (program.length > 0 ? step : turn);
    }
    const own = commands.get(message.seq);
    const acts = does.get(message.seq);
    if (message.role === 'assistant') asks = acts?.asks ?? false;
    // Of what other tools ran texts alone were imported; a program's own code may stand in its text too.
    const exitCode = own?.at(-1)?.exit_code ?? (observes(message.role) ? shownExit(message.head) : null);
    return {
      seq: message.seq,
      role: message.role,
      chars: message.chars,
      at: timed ? message.created_at : null,
      /** The conversation of a program that it belongs to. */
      thread: names[message.seq] ?? null,
      /** The step of an answer and of the messages that follow it. */
      step,
      call: calls.findLast((call) => call.state === 'ok') ?? null,
      tries: calls.length,
      execMs: own?.reduce((sum, command) => sum + command.duration_ms, 0) ?? null,
      /** Null too where 1 is an answer: a search without a hit did not fail. */
      exitCode: exitCode === 1 && asks ? null : exitCode,
      timedOut: own?.some((command) => command.timed_out === 1) ?? false,
      does: acts?.does ?? null,
    };
  });
  return { outline, threads: threadDocuments(heads, program, byCall) };
}

const groupSchema = z.object({
  success: z.array(z.string()).catch([]),
  failure: z.array(z.string()).catch([]),
});
const GROUPS = ['FAIL_TO_PASS', 'PASS_TO_PASS', 'FAIL_TO_FAIL', 'PASS_TO_FAIL'] as const;

/** `tests_status` of a harness report, whether or not it is wrapped in the instance's id. */
function statusOf(report: unknown): Map<string, unknown> {
  if (!isRecord(report)) return new Map();
  const fields = new Map<string, unknown>(Object.entries(report));
  const direct = fields.get('tests_status');
  if (isRecord(direct)) return new Map(Object.entries(direct));
  for (const inner of fields.values()) {
    const nested = inner !== report ? statusOf(inner) : new Map<string, unknown>();
    if (nested.size > 0) return nested;
  }
  return new Map();
}

export function testsOf(report: string | null, log: string | null) {
  const status = statusOf(lenientJson(report));
  const tests = GROUPS.flatMap((group) => {
    const parsed = groupSchema.safeParse(status.get(group));
    if (!parsed.success) return [];
    return [
      ...parsed.data.failure.map((name) => ({ name, group, passed: false })),
      ...parsed.data.success.map((name) => ({ name, group, passed: true })),
    ];
  });
  const find = lineFinder(log);
  return tests.map((test) => ({ ...test, line: test.passed ? null : find(test.name) }));
}

const VERDICT = /\b(FAILED|FAIL|ERROR|failed|not ok)\b|✕|✗/;

/** Finds the line that says a test failed, else the last one that names it; lines count from 1. */
function lineFinder(log: string | null): (test: string) => number | null {
  if (log === null) return () => null;
  const lines = log.split('\n');
  const loud = lines.flatMap((line, i) => (VERDICT.test(line) ? [i] : []));
  return (test) => {
    const said = loud.findLast((i) => lines[i]!.includes(test));
    if (said !== undefined) return said + 1;
    const short = test.split(/::|\s\(/).filter((part) => part !== '');
    const last = test.includes('::') ? short.at(-1) : short[0];
    const named = lines.findLastIndex((line) => line.includes(test) || (last ? line.includes(last) : false));
    return named >= 0 ? named + 1 : null;
  };
}
