/**
 * The run report `<model>.<run>.json` of the official harness, and the one that sb-cli saves for the hosted service. Ids are sorted into lists;
 * which list counts for an id that stands in several is decided as the harness fills them.
 */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { pythonJson } from '../../base/python/json.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import type { ForeignOutcome } from '../foreignFormat.ts';
import { type RawBody, type Read, readForeign } from '../foreignJson.ts';

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

const ids = z.array(instanceIdSchema).default([]);

/** Unknown keys are other people's additions. */
const runReportSchema = z.looseObject({
  total_instances: z.number().int().min(0).optional(),
  completed_ids: ids,
  incomplete_ids: ids,
  empty_patch_ids: ids,
  submitted_ids: ids,
  resolved_ids: z.array(instanceIdSchema),
  unresolved_ids: ids,
  error_ids: ids,
  /** sb-cli. */
  pending_ids: z.array(instanceIdSchema).optional(),
  failed_ids: ids,
  /** Harness 5. */
  infra_failure_ids: z.array(instanceIdSchema).optional(),
  failure_reasons: keyed(z.string()).default({}),
  /** Some tools quote it. */
  schema_version: z.union([z.number(), z.string().regex(/^\d+$/, 'must be a number')]).optional(),
});

export interface ReportedRun {
  readonly kind: 'harness' | 'sb-cli';
  /** Only harness 5 lists what the environment broke; null for sb-cli, which tells nothing of it. */
  readonly harness: 'v4.1' | 'v5' | null;
  readonly verdicts: ReadonlyMap<string, ForeignOutcome>;
  /** Why it failed, by instance. */
  readonly reasons: ReadonlyMap<string, string>;
  /** What the environment broke; their verdict is unresolved or an error all the same, as in the official score. */
  readonly infra: ReadonlySet<string>;
  /** Instances of the dataset; null where the report does not say it. */
  readonly total: number | null;
  /** How many resolved ids are listed again. */
  readonly repeated: number;
}

function verdictsOf(report: z.infer<typeof runReportSchema>): Map<string, ForeignOutcome> {
  const verdicts = new Map<string, ForeignOutcome>();
  const put = (list: readonly string[], verdict: ForeignOutcome) => {
    for (const id of list) verdicts.set(id, verdict);
  };
  // The harness lists a prediction as submitted even where the instance was not asked for.
  put(report.submitted_ids, 'incomplete');
  // A report that was written and cannot be read is completed and has no verdict.
  put(report.completed_ids, 'error');
  put(report.incomplete_ids, 'incomplete');
  put(report.pending_ids ?? [], 'pending');
  put(report.unresolved_ids, 'unresolved');
  put(report.resolved_ids, 'resolved');
  put(report.failed_ids, 'error');
  put(report.error_ids, 'error');
  // An empty patch is sorted out before anything can fail.
  put(report.empty_patch_ids, 'empty_patch');
  return verdicts;
}

export function readRunReport(text: RawBody): Read<ReportedRun> {
  const read = readForeign(
    text,
    runReportSchema,
    (value) => isRecord(value) && 'resolved_ids' in value,
    'it has no resolved_ids, so it is not a run report of the harness or of sb-cli',
  );
  if (!read.ok) return read;
  const report = read.value;
  const hosted = report.pending_ids !== undefined;
  return {
    ok: true,
    value: {
      kind: hosted ? 'sb-cli' : 'harness',
      harness: hosted ? null : report.infra_failure_ids === undefined ? 'v4.1' : 'v5',
      verdicts: verdictsOf(report),
      reasons: new Map(Object.entries(report.failure_reasons)),
      infra: new Set(report.infra_failure_ids),
      total: report.total_instances ?? null,
      repeated: report.resolved_ids.length - new Set(report.resolved_ids).size,
    },
  };
}
