/**
 * `output.jsonl` of OpenHands as a run: a line for each instance, with its patch, history and what it used. Verdicts stand in the line, in
 * `output.swebench_eval.jsonl`, or in a run report beside. The patch is graded from its first "diff --git" on, there and here.
 */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { hasKeys, linesOf, readerOf, readIfThere, topOf } from '../foreignFile.ts';
import {
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  foreignId,
  foreignIdProblem,
  foreignInstance,
  spanOf,
  UNKNOWN_MODEL,
} from '../foreignFormat.ts';
import { MOST_UNREADABLE } from '../predictions.ts';
import { SourceError } from '../sourceError.ts';
import { withPrinted, withReport, withReportNear } from '../verdicts.ts';
import { readHistory } from './history.ts';

const OUTPUT = 'output.jsonl';
const isOutput = (head: string): boolean =>
  hasKeys(head, 'instance_id') &&
  !hasKeys(head, 'model_patch') &&
  (hasKeys(head, 'test_result') || hasKeys(head, 'git_patch')) &&
  ['history', 'instruction', 'metadata', 'git_patch'].some((key) => hasKeys(head, key));

export const openHandsOutput: ForeignFormat = {
  recognise({ files, head }) {
    const found =
      files === null ? isOutput(head('')) : topOf(files).includes(OUTPUT) && isOutput(head(OUTPUT));
    return found ? { words: "OpenHands' output.jsonl", certain: 'sure' } : null;
  },
  read: (source, report) => {
    const file = statSync(source).isDirectory() ? join(source, OUTPUT) : source;
    return readOutput(file, report);
  },
};

const reportSchema = z.looseObject({
  resolved: z.boolean().nullish(),
  empty_generation: z.boolean().nullish(),
  failed_apply_patch: z.boolean().nullish(),
  error_eval: z.boolean().nullish(),
  test_timeout: z.boolean().nullish(),
});
const rowSchema = z.looseObject({
  instance_id: z.string(),
  git_patch: z.string().nullish(),
  test_result: z.looseObject({ git_patch: z.string().nullish(), report: reportSchema.nullish() }).nullish(),
  report: reportSchema.nullish(),
  resolved: z.boolean().nullish(),
  error: z.string().nullish(),
  metadata: z.unknown().optional(),
  history: z.array(z.unknown()).nullish(),
  metrics: z.unknown().optional(),
});
type Row = z.infer<typeof rowSchema>;

export const readOutputLine = readerOf(
  rowSchema,
  (value) => isRecord(value) && 'instance_id' in value,
  'it has no instance_id',
);

/** Null where the line says nothing of a grading. */
export function verdictOfRow({ report, test_result, resolved }: Row): ForeignVerdict | null {
  const said = report ?? test_result?.report;
  const won = said?.resolved ?? resolved;
  if (!said && typeof won !== 'boolean') return null;
  const lost = won
    ? undefined
    : said?.error_eval
      ? 'error_eval'
      : said?.test_timeout
        ? 'test_timeout'
        : undefined;
  const verdict = won
    ? 'resolved'
    : lost !== undefined || typeof won !== 'boolean'
      ? 'error'
      : said?.empty_generation
        ? 'empty_patch'
        : 'unresolved';
  return { verdict, reason: lost ?? null, report: null, grader: 'openhands' };
}

/** The patch as OpenHands's evaluation takes it: text before the first diff is output of a shell. */
export function patchOfOutput(patch: string | null | undefined): string {
  const text = (patch ?? '').replaceAll('\r\n', '\n');
  if (text.trim() === '') return '';
  const from = text.startsWith('diff --git') ? 0 : text.indexOf('\ndiff --git') + 1;
  return `${text.slice(from).trimEnd()}\n`;
}

/** The end of an attempt by OpenHands' errors; any other is a defect, and the trial is missing. */
const REASONS: readonly (readonly [pattern: RegExp, reason: ExitReason])[] = [
  [/maximum (?:number of )?iteration/i, 'limit_steps'],
  [/maximum budget|budget exceeded/i, 'limit_cost'],
  [/stuck in (?:a )?loop|AgentStuckInLoop/i, 'submitted'],
  [/ContextWindowExceed|context (?:window|length)/i, 'context_window_exceeded'],
  [/ContentPolicy|content policy/i, 'model_refusal'],
  [
    /RateLimit|ServiceUnavailable|APIConnection|InternalServerError|APIError|LLMTimeout|overloaded/i,
    'model_unavailable',
  ],
  [/AuthenticationError|PermissionDenied/i, 'auth_failed'],
  [/BadRequestError|LLMBadRequest/i, 'model_rejected'],
  [/AgentRuntime|RuntimeUnavailable|RuntimeDisconnected|Workspace|sandbox|container/i, 'env_died'],
];
export const outputReasonOf = (error: string): ExitReason =>
  REASONS.find(([pattern]) => pattern.test(error.slice(0, 10_000)))?.[1] ?? 'internal_error';

/** The model of the line, or of metadata.json beside; its places changed with the versions. */
function modelOf(metadata: unknown): string | null {
  const of = recordOf(metadata);
  const named = [recordOf(of.llm_config).model, recordOf(of.llm).model, of.model_name, of.model];
  return (named.find((name) => typeof name === 'string' && name !== '') as string | undefined) ?? null;
}

function instanceOf(row: Row, id: string, file: string): ForeignInstance {
  const metrics = recordOf(row.metrics);
  const model = modelOf(row.metadata) ?? UNKNOWN_MODEL;
  const { messages, calls, steps, times } = readHistory(row.history ?? [], metrics);
  const patch = patchOfOutput(row.git_patch ?? row.test_result?.git_patch);
  const total = plausibleNano(metrics.accumulated_cost);
  // Without a price each call adds nothing: no costs, and a sum of 0.
  const priced = Array.isArray(metrics.costs) ? metrics.costs.length > 0 : total !== 0;
  const costNano = priced || total !== 0 ? total : null;
  return foreignInstance({
    instanceId: id,
    model,
    format: 'openhands',
    exitStatus: row.error ? (row.error.split('\n', 1)[0] ?? '').slice(0, 200) : null,
    exitReason: row.error ? outputReasonOf(row.error) : 'submitted',
    errorMessage: row.error ?? null,
    submission: patch || null,
    modelPatch: patch,
    steps,
    costNano,
    messages,
    calls,
    ...spanOf(times),
    file,
  });
}

interface Rows {
  readonly rows: ReadonlyMap<
    string,
    { readonly instance: ForeignInstance; readonly verdict: ForeignVerdict | null }
  >;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}

function rowsOf(file: string): Rows {
  const rows = new Map<string, { instance: ForeignInstance; verdict: ForeignVerdict | null }>();
  const warnings: string[] = [];
  const problems: string[] = [];
  for (const { line, bytes, ended } of linesOf(file)) {
    if (bytes.length < 1000 && bytes.toString('latin1').trim() === '') continue;
    const read = readOutputLine(bytes);
    const at = `${file}:${line}`;
    if (!read.ok) {
      if (!ended && read.fault === 'not_json')
        warnings.push(`${at} is cut off and was left out: ${read.message}`);
      else problems.push(`${at}: ${read.message}`);
      if (problems.length >= MOST_UNREADABLE) break;
      continue;
    }
    const id = foreignId(read.value.instance_id);
    const wrong = foreignIdProblem(at, id);
    if (wrong !== null) problems.push(wrong);
    else {
      if (rows.has(id)) warnings.push(`${at} repeats ${id}; the later one counts`);
      rows.set(id, { instance: instanceOf(read.value, id, file), verdict: verdictOfRow(read.value) });
    }
  }
  return { rows, warnings, problems };
}

function readOutput(file: string, report: string | undefined): ForeignRun {
  if (!existsSync(file)) throw new SourceError(`there is no ${file}`);
  const read = rowsOf(file);
  const { warnings, problems } = read;
  const folder = dirname(resolve(file));
  const found = [...read.rows.values()].map(({ instance }) => instance);
  // Newer versions keep what they were told beside the lines.
  const metadata = found.some(({ model }) => model === UNKNOWN_MODEL)
    ? readIfThere(join(folder, 'metadata.json'), readMetadata)
    : null;
  const model = modelOf(metadata) ?? UNKNOWN_MODEL;
  const instances = found.map((each) => (each.model === UNKNOWN_MODEL ? { ...each, model } : each));
  const verdicts = verdictsOf(read);
  const run: ForeignRun = { folder: file, instances, verdicts, warnings, problems };
  if (report !== undefined || problems.length > 0) return withReport(run, report);
  if (verdicts.size > 0) return counted(run);
  // Verdicts that are not in the lines lie beside them.
  const name = basename(file).replace(/\.jsonl$/, '');
  const evaluated = join(folder, `${name}.swebench_eval.jsonl`);
  const reported = join(folder, `${name}.report.json`);
  if (existsSync(evaluated)) {
    const graded = rowsOf(evaluated);
    return counted({ ...run, verdicts: verdictsOf(graded), problems: graded.problems });
  }
  return withReportNear(run, folder, { report: existsSync(reported) ? reported : undefined });
}

const verdictsOf = ({ rows }: Rows): ReadonlyMap<string, ForeignVerdict> =>
  new Map([...rows].flatMap(([id, { verdict }]) => (verdict ? [[id, verdict] as const] : [])));

/** OpenHands's own report counts every line, and every instance without a verdict as a failure. */
const counted = (run: ForeignRun): ForeignRun =>
  withPrinted(run, {
    resolved: [...run.verdicts.values()].filter(({ verdict }) => verdict === 'resolved').length,
    of: run.instances.length,
  });

const readMetadata = readerOf(z.unknown(), isRecord, 'it is no metadata');
