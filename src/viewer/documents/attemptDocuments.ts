/** Documents about one attempt: its head and outline, its messages chunk by chunk, its verdicts with their test output. */
import { gunzipSync } from 'node:zlib';
import { errorText } from '../../base/text/errorText.ts';
import type { AttemptRow } from '../../store/records/trials.ts';
import type {
  ShownCommand,
  ShownEvaluation,
  ShownMessage,
  ViewerQueries,
} from '../../store/records/viewerQueries.ts';
import type { EngineStay } from './attemptFacts.ts';
import type { Ledger } from './attemptMoney.ts';
import {
  type AttemptDocument,
  type EvaluationDocument,
  type EvaluationSummary,
  MESSAGES_PER_CHUNK,
  type MessageChunk,
  type MessageDocument,
  type RawChunk,
} from './documents.ts';
import {
  readBytes,
  readEvidence,
  readFlags,
  readMessage,
  readNumbers,
  readRow,
  readTexts,
} from './lenient.ts';
import { outlineOf } from './outline.ts';
import { testsOf } from './testResults.ts';

/** Longest test output sent to a page; the middle is left out and counted. */
const LOG_LIMIT = 2_000_000;

export function attemptDocument(
  queries: ViewerQueries,
  ledger: Ledger,
  attemptId: number,
): AttemptDocument | undefined {
  const attempt = queries.attempt(attemptId);
  const head = attempt && queries.trialHead(attempt.trial_id);
  if (!attempt || !head) return undefined;
  const row = readRow(head.row);
  const { outline, threads } = outlineOf(queries, attemptId);
  return {
    run: { id: head.run_id, name: head.run },
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
    attempts: queries.attemptsOf(head.trial).map((a) => ({
      id: a.id,
      number: a.number,
      final: a.id === head.final_attempt_id,
      state: a.state,
      exitReason: a.exit_reason,
      exitClass: a.exit_class,
      steps: a.steps,
      elapsedMs: a.elapsed_ms,
      startedAt: a.started_at,
      costNano: ledger.money(a).costNano,
    })),
    attempt: factsOf(attempt, ledger, queries.engineStays(attemptId)),
    patch: attempt.model_patch ?? '',
    submission: readBytes(attempt.submission),
    captured: readBytes(attempt.captured_patch),
    phases: queries.phases(attemptId),
    outline,
    threads,
    chunks: Math.ceil(((outline.at(-1)?.seq ?? -1) + 1) / MESSAGES_PER_CHUNK),
    evaluations: queries
      .evaluationsOf(head.trial)
      .map((evaluation) => ({ evaluation, ...evaluationSummary(evaluation, attempt) }))
      .map(({ evaluation: _row, ...summary }, i, list) => ({
        ...summary,
        current: summary.current && !list.slice(i + 1).some((later) => later.current),
      })),
  };
}

function factsOf(attempt: AttemptRow, ledger: Ledger, engines: EngineStay[]): AttemptDocument['attempt'] {
  return {
    id: attempt.id,
    number: attempt.number,
    state: attempt.state,
    slot: attempt.slot,
    startedAt: attempt.started_at,
    endedAt: attempt.ended_at,
    exitReason: attempt.exit_reason,
    exitClass: attempt.exit_class,
    exitDetail: attempt.exit_detail,
    exitStatus: attempt.exit_status,
    error: attempt.error_message,
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
    money: ledger.money(attempt),
    program: readEvidence(attempt.error_evidence),
    ...(engines.length > 0 && { engines }),
  };
}

function range(chunk: number): [from: number, to: number] {
  return [chunk * MESSAGES_PER_CHUNK, (chunk + 1) * MESSAGES_PER_CHUNK];
}

export function messageChunk(queries: ViewerQueries, attemptId: number, chunk: number): MessageChunk {
  const [from, to] = range(chunk);
  const commands = Map.groupBy(queries.commands(attemptId, from, to), (command) => command.message_seq);
  return {
    attempt: attemptId,
    from,
    messages: queries
      .messages(attemptId, from, to)
      .map((row) => messageDocument(row, commands.get(row.seq) ?? [])),
  };
}

function messageDocument(row: ShownMessage, commands: readonly ShownCommand[]): MessageDocument {
  return {
    seq: row.seq,
    role: row.role,
    content: row.content,
    ...readMessage(row.data),
    commands: commands.map((command) => {
      const output = command.output.toString('utf8');
      const at = output === '' ? -1 : row.content.indexOf(output);
      return {
        command: command.command,
        // The observation usually repeats the output word for word: then it is sent once.
        output: at >= 0 ? null : output,
        at: at >= 0 ? [at, at + output.length] : null,
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

export function rawChunk(queries: ViewerQueries, attemptId: number, chunk: number): RawChunk {
  const [from, to] = range(chunk);
  return {
    attempt: attemptId,
    from,
    messages: queries
      .messages(attemptId, from, to)
      .map((row) => ({ seq: row.seq, createdAt: row.created_at, data: row.data })),
  };
}

function evaluationSummary(
  row: Omit<ShownEvaluation, 'log'>,
  attempt: Pick<AttemptRow, 'patch_sha256'> | undefined,
): EvaluationSummary {
  return {
    id: row.id,
    attempt: row.attempt_id,
    dialect: row.dialect,
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
    current: attempt !== undefined && row.patch_sha256 === attempt.patch_sha256,
  };
}

export function evaluationDocument(queries: ViewerQueries, id: number): EvaluationDocument | undefined {
  const row = queries.evaluation(id);
  if (!row) return undefined;
  const attempt = row.attempt_id === null ? undefined : queries.attempt(row.attempt_id);
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
