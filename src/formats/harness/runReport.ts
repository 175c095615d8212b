/**
 * The run report `<model>.<run>.json` of the official harness, and the one that sb-cli saves for the hosted service. Ids are sorted into lists;
 * which list counts for an id that stands in several is decided as the harness fills them.
 */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { pythonJson } from '../../base/python/json.ts';
import { readerOf } from '../foreignFile.ts';
import {
  alsoListed,
  type ForeignOutcome,
  foreignId,
  foreignIds,
  type IdLists,
  refuseContradictions,
  repeatedIds,
  verdictsOfLists,
} from '../foreignFormat.ts';

/** Schema 2, with the fields of both versions of the harness; the order of keys is the file's. */
export interface RunReport {
  total_instances: number;
  submitted_instances: number;
  completed_instances: number;
  resolved_instances: number;
  unresolved_instances: number;
  infra_failure_instances?: number;
  ambiguous_failure_instances?: number;
  empty_patch_instances: number;
  error_instances: number;
  completed_ids: string[];
  incomplete_ids: string[];
  empty_patch_ids: string[];
  submitted_ids: string[];
  resolved_ids: string[];
  unresolved_ids: string[];
  infra_failure_ids?: string[];
  ambiguous_failure_ids?: string[];
  failure_reasons?: ReadonlyMap<string, string>;
  error_ids: string[];
  unstopped_instances?: number;
  unstopped_containers?: string[];
  unremoved_images?: string[];
  schema_version: 2;
}

export const runReportText = (report: RunReport): string => `${pythonJson(report)}\n`;

const ids = foreignIds.default([]);

/** Unknown keys are other people's additions. */
const reportSchema = z.looseObject({
  total_instances: z.number().int().min(0).optional(),
  completed_ids: ids,
  incomplete_ids: ids,
  empty_patch_ids: ids,
  submitted_ids: ids,
  resolved_ids: foreignIds,
  unresolved_ids: ids,
  error_ids: ids,
  /** sb-cli. */
  pending_ids: foreignIds.optional(),
  failed_ids: ids,
  /** Harness 5. */
  infra_failure_ids: foreignIds.optional(),
  failure_reasons: keyed(z.string()).default({}),
  /** Some tools quote it. */
  schema_version: z.union([z.number(), z.string().regex(/^\d+$/, 'must be a number')]).optional(),
});

/** Entries of Multi-SWE-bench's board call the list `resolved`, beside the other lists of a run report. */
const runReportSchema = z
  .preprocess(
    (value) =>
      isRecord(value) && !('resolved_ids' in value) ? { ...value, resolved_ids: value.resolved } : value,
    reportSchema,
  )
  .superRefine(
    refuseContradictions('resolved_ids', ['unresolved_ids', 'error_ids', 'failed_ids', 'empty_patch_ids']),
  );

/** The lists as the harness fills them. */
const LISTS: IdLists = [
  // A prediction is listed as submitted even where the instance was not asked for.
  ['submitted_ids', 'incomplete'],
  // A report that was written and cannot be read is completed and has no verdict.
  ['completed_ids', 'error'],
  ['incomplete_ids', 'incomplete'],
  ['pending_ids', 'pending'],
  ['unresolved_ids', 'unresolved'],
  ['resolved_ids', 'resolved'],
  ['failed_ids', 'error'],
  ['error_ids', 'error'],
  // An empty patch is sorted out before anything can fail.
  ['empty_patch_ids', 'empty_patch'],
];

export const RUN_REPORT_KEYS = ['resolved_ids', 'completed_ids', 'submitted_ids', 'total_instances'];

/** Told from its keys, in a value or in the beginning of a file. */
export const isRunReport = (has: (key: string) => boolean): boolean =>
  // Terminal-Bench lists ids beside its results.
  (has('resolved_ids') && !has('results')) ||
  (has('resolved') && ['unresolved_ids', 'submitted_ids', 'completed_ids'].some(has));

export interface ReportedRun {
  readonly kind: 'harness' | 'sb-cli';
  /** Only harness 5 lists what the environment broke; null for sb-cli, which tells nothing of it. */
  readonly harness: 'v4.1' | 'v5' | null;
  readonly verdicts: ReadonlyMap<string, ForeignOutcome>;
  /** The reasons of failures, by instance. */
  readonly reasons: ReadonlyMap<string, string>;
  /** Instances that the environment broke; their verdict is unresolved or an error all the same, as in the official score. */
  readonly infra: ReadonlySet<string>;
  /** Instances of the dataset; null where the report does not say it. */
  readonly total: number | null;
  /** The places where the report contradicts itself. */
  readonly warnings: readonly string[];
}

const COUNTED = ['resolved', 'unresolved', 'error', 'empty_patch', 'completed', 'submitted'] as const;

/** "says 7 in resolved_instances and lists 3": the lists count, because only they say which. */
const otherCounts = (report: z.infer<typeof reportSchema>): string[] =>
  COUNTED.flatMap((name) => {
    const [says, lists] = [report[`${name}_instances`], new Set(report[`${name}_ids`]).size];
    // A count alone contradicts nothing.
    return typeof says !== 'number' || says === lists || (lists === 0 && name !== 'resolved')
      ? []
      : [`says ${says} in ${name}_instances and lists ${lists} in ${name}_ids; the list counts`];
  });

export const readRunReport = readerOf(
  runReportSchema.transform((report): ReportedRun => {
    const hosted = report.pending_ids !== undefined;
    return {
      kind: hosted ? 'sb-cli' : 'harness',
      harness: hosted ? null : report.infra_failure_ids === undefined ? 'v4.1' : 'v5',
      verdicts: verdictsOfLists(LISTS, report),
      reasons: new Map(Object.entries(report.failure_reasons).map(([id, why]) => [foreignId(id), why])),
      infra: new Set(report.infra_failure_ids),
      total: report.total_instances ?? null,
      warnings: [
        ...repeatedIds(report.resolved_ids),
        ...alsoListed(report, 'resolved_ids', ['incomplete_ids', 'pending_ids']),
        ...otherCounts(report),
      ],
    };
  }),
  (value) => isRecord(value) && isRunReport((key) => key in value),
  'it has no resolved_ids, so it is not a run report of the harness or of sb-cli',
);
