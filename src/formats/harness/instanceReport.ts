/** report.json of one instance: the harness keys the verdict by the instance's id, the hosted service does not. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { pythonJson } from '../../base/python/json.ts';
import { PythonLiteralError, parsePythonLiteral } from '../../base/python/literal.ts';
import { type RawBody, type Read, readerOf, refused } from '../foreignFile.ts';

export interface TestLists {
  success: string[];
  failure: string[];
}
export interface TestsStatus {
  FAIL_TO_PASS: TestLists;
  PASS_TO_PASS: TestLists;
  FAIL_TO_FAIL: TestLists;
  PASS_TO_FAIL: TestLists;
}

/** The value under the instance's id in the official report.json; the order of keys is the file's. */
export interface InstanceVerdict {
  patch_is_None: boolean;
  patch_exists: boolean;
  patch_successfully_applied: boolean;
  resolved: boolean;
  infra_failure?: boolean;
  infra_failure_reason?: string;
  tests_status?: TestsStatus;
}
export type InstanceReport = Record<string, InstanceVerdict>;

export const instanceReportText = (report: object): string => pythonJson(report);

const record = keyed(z.unknown());
const lists = z.object({ success: z.array(z.string()), failure: z.array(z.string()) });
/** The harness takes a verdict from `resolved` alone. */
const verdictSchema = z.object({
  patch_is_None: z.boolean().default(false),
  patch_exists: z.boolean().default(true),
  patch_successfully_applied: z.boolean().exactOptional(),
  resolved: z.boolean(),
  infra_failure: z.boolean().exactOptional(),
  infra_failure_reason: z.string().exactOptional(),
  tests_status: z
    .object({
      FAIL_TO_PASS: lists,
      PASS_TO_PASS: lists,
      FAIL_TO_FAIL: lists.default({ success: [], failure: [] }),
      PASS_TO_FAIL: lists.default({ success: [], failure: [] }),
    })
    .exactOptional(),
});

/** A verdict of another grader; a hosted one may say nothing of how the patch applied. */
type ReportedInstance = z.infer<typeof verdictSchema>;

export function readInstanceReport(text: RawBody, id: string): Read<ReportedInstance> {
  const none = `it holds no verdict for ${id}`;
  const root = readerOf(record, isRecord, none)(text);
  if (!root.ok) return root;
  const parsed = verdictSchema.safeParse(Object.hasOwn(root.value, id) ? root.value[id] : root.value);
  return parsed.success ? { ok: true, value: parsed.data } : refused('other_kind', none);
}

/** Ids that a report file holds verdicts for, where it is keyed by them. */
export function reportedIds(text: RawBody): string[] {
  const root = readerOf(record, isRecord, 'it is not a report')(text);
  if (!root.ok) return [];
  return Object.entries(root.value)
    .filter(([, value]) => verdictSchema.safeParse(value).success)
    .map(([id]) => id);
}

const MARK = 'report: {';

/**
 * The verdict that run_instance.log states, as Python prints it; published logs often come without report.json. Undefined where the log states
 * none, or another instance's. The last one counts, because a log may hold several runs.
 */
export function verdictInRunLog(text: RawBody, id: string): ReportedInstance | undefined {
  const log = typeof text === 'string' ? text : new TextDecoder().decode(text);
  const at = log.lastIndexOf(MARK);
  if (at < 0) return undefined;
  const end = log.indexOf('\n', at);
  try {
    const value = parsePythonLiteral(log.slice(at + MARK.length - 1, end < 0 ? undefined : end));
    if (!isRecord(value) || !isRecord(value[id])) return undefined;
    const read = readInstanceReport(JSON.stringify(value), id);
    return read.ok ? read.value : undefined;
  } catch (error) {
    if (error instanceof PythonLiteralError) return undefined;
    throw error;
  }
}
