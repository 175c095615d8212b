/** The verdict that run_instance.log states: `report: {'<id>': {…}}`, as Python prints it. Published logs often come without report.json. */
import { isRecord } from '../../base/isRecord.ts';
import { PythonLiteralError, parsePythonLiteral } from '../../base/python/literal.ts';
import type { Body } from '../foreignJson.ts';
import { type ReportedInstance, readInstanceReport } from '../reports/instanceReport.ts';

const MARK = 'report: {';

/** Undefined where the log states none, or another instance's. The last one counts, because a log may hold several runs. */
export function verdictInRunLog(text: Body, id: string): ReportedInstance | undefined {
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
