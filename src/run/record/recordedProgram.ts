/** Reads the calls of a recorded run whose agents were installed programs, which `--model replay:RUN` answers from. */
import { z } from 'zod';
import { DIALECT_NAMES } from '../../model/dialects/dialects.ts';
import { type Message, MODEL_ERROR_CODES, type ModelErrorResponse } from '../../model/model.ts';
import type { RecordedProgram, RecordedWire, RecordedWireCall } from '../../model/offline/replayedWire.ts';
import type { Store } from '../../store/open.ts';
import {
  endedCalls,
  firstProgramCall,
  type ProgramCallRow,
  programCallsOf,
} from '../../store/records/modelCalls.ts';
import type { RunRow } from '../../store/records/runs.ts';
import { messagesOf } from '../../store/records/steps.ts';
import { callOf } from './ledgerRow.ts';
import { requestsOf, unpacked } from './programRecord.ts';

const failureSchema = z.looseObject({
  success: z.literal(false),
  error: z.enum(MODEL_ERROR_CODES),
  message: z.string(),
  metadata: z.looseObject({ kind: z.string().optional() }).optional(),
});
const headersSchema = z.record(z.string(), z.string());

const failureOf = (text: string | null): ModelErrorResponse | null =>
  text === null ? null : (failureSchema.parse(JSON.parse(text)) as ModelErrorResponse);

/** The message as the model said it: what the record added to it is left out. */
function messageOf(
  { reply_message: seq }: ProgramCallRow,
  data: ReadonlyMap<number, string>,
): Message | null {
  const text = seq === null ? undefined : data.get(seq);
  if (text === undefined) return null;
  const { extra: _extra, ...message } = JSON.parse(text) as Message;
  return message;
}

/** Every call of an attempt that was answered, with its rows of the ledger. */
export function programOf(store: Store, attemptId: number): RecordedWireCall[] {
  const rows = programCallsOf(store, attemptId);
  if (rows.length === 0) return [];
  const tries = Map.groupBy(endedCalls(store, attemptId), ({ call }) => call);
  const data = new Map(messagesOf(store, attemptId).map((row) => [row.seq, row.data]));
  return requestsOf(rows).map(({ row, body }) => ({
    operation: row.operation,
    request: body,
    answer: {
      ...{ end: row.answer, status: row.status, bytes: unpacked(row.response) },
      headers: headersSchema.parse(JSON.parse(row.headers)),
    },
    message: messageOf(row, data),
    failure: failureOf(row.failure),
    tries: (tries.get(row.call) ?? []).map(callOf),
  }));
}

/** undefined where no program made calls. */
export function recordedWireOf(
  store: Store,
  run: RunRow,
  armId: number | undefined,
  programFor: (...trial: Parameters<RecordedWire['programFor']>) => RecordedProgram,
): RecordedWire | undefined {
  const found = firstProgramCall(store, run.id, armId ?? null);
  if (!found) return undefined;
  return {
    dialect: z.enum(DIALECT_NAMES).parse(found.dialect),
    model: found.model,
    programFor: async (...trial) => programFor(...trial),
  };
}
