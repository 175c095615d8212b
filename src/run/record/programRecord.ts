/**
 * Calls of installed programs as rows and back. Each request repeats the whole conversation, so a row holds only what is new since the
 * call that it goes on from.
 */

import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import type { ProgramCallRecord } from '../../agent/contract.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Redactor } from '../../base/text/redact.ts';
import { DIALECT_NAMES, DIALECTS, type DialectName } from '../../model/dialects/dialects.ts';
import { type Message, MODEL_ERROR_CODES, type ModelErrorResponse } from '../../model/model.ts';
import type { RecordedWireCall } from '../../model/offline/replayed.ts';
import type { Store } from '../../store/open.ts';
import { messagesOf } from '../../store/records/attemptBodies.ts';
import {
  endedCalls,
  firstProgramCall,
  type ProgramCallRow,
  programCallsOf,
} from '../../store/records/modelCalls.ts';
import { armsOf } from '../../store/records/runs.ts';
import { callOf } from './ledgerRow.ts';

type Body = Readonly<Record<string, unknown>>;

const storedSchema = z.object({
  base: z.number().int().nullable(),
  shared: z.number().int().min(0),
  items: z.array(z.unknown()),
  /** null: that of the base. */
  rest: z.record(z.string(), z.unknown()).nullable(),
});

interface ThreadSoFar {
  readonly call: number;
  readonly rest: string;
  readonly items: readonly string[];
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64');

function split(dialect: DialectName, bytes: Uint8Array): { items: readonly unknown[]; rest: Body } {
  const body = JSON.parse(Buffer.from(bytes).toString('utf8')) as Body;
  const name = DIALECTS[dialect].historyIn;
  const { [name]: list, ...rest } = body;
  return Array.isArray(list) ? { items: list, rest } : { items: [], rest: body };
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) same += 1;
  return same;
}

/** The record of one attempt: it remembers what each conversation has said so far. */
export function createProgramRecord(redactor: Redactor) {
  const threads = new Map<string, ThreadSoFar>();
  const request = ({ call }: ProgramCallRecord): Buffer => {
    const { items, rest } = split(call.dialect, call.sent);
    const texts = items.map((item) => JSON.stringify(item));
    const now: ThreadSoFar = {
      call: call.index,
      rest: digest(JSON.stringify(rest)),
      items: texts.map(digest),
    };
    const base = threads.get(call.thread);
    threads.set(call.thread, now);
    const shared = base ? commonLength(base.items, now.items) : 0;
    const kept = {
      base: base?.call ?? null,
      shared,
      items: items.slice(shared),
      rest: base?.rest === now.rest ? null : rest,
    };
    return gzipSync(redactor.json(JSON.stringify(kept)));
  };
  return {
    row(record: ProgramCallRecord): Omit<ProgramCallRow, 'attempt_id'> {
      const { call, label, firstMessage, replyMessage } = record;
      const { end, status, headers, bytes } = call.answer;
      return {
        call: call.index,
        step: call.step,
        label,
        thread: call.thread,
        dialect: call.dialect,
        operation: call.operation,
        model: call.model,
        first_message: firstMessage,
        reply_message: replyMessage,
        answer: end,
        status,
        headers: redactor.json(JSON.stringify(headers)),
        request: request(record),
        response: gzipSync(redactor.bytes(bytes)),
        failure: call.failure && redactor.json(JSON.stringify(call.failure)),
      };
    },
  };
}

const MOST_BYTES = 256 * 1024 * 1024;
export const unpacked = (bytes: Buffer): Buffer => gunzipSync(bytes, { maxOutputLength: MOST_BYTES });

type Whole = { readonly items: readonly unknown[]; readonly rest: Body };

/** The whole requests of an attempt, in the order of its calls. Throws where a row cannot be read. */
export function requestsOf(rows: readonly ProgramCallRow[]) {
  const byCall = new Map(rows.map((row) => [row.call, row]));
  const known = new Map<number, Whole | 'open'>();
  const wholeOf = (call: number): Whole => {
    const found = known.get(call);
    const row = byCall.get(call);
    if (found === 'open' || !row) throw new Error(`call ${call} goes on from a call that is not there`);
    if (found) return found;
    known.set(call, 'open');
    const stored = storedSchema.parse(JSON.parse(unpacked(row.request).toString('utf8')));
    const base = stored.base === null ? null : wholeOf(stored.base);
    const items = [...(base?.items.slice(0, stored.shared) ?? []), ...stored.items];
    const whole = { items, rest: stored.rest ?? base?.rest ?? {} };
    known.set(call, whole);
    return whole;
  };
  return rows.map((row) => {
    const { items, rest } = wholeOf(row.call);
    const name = DIALECTS[row.dialect as DialectName].historyIn;
    return { row, body: name in rest ? rest : { ...rest, [name]: items } };
  });
}

/**
 * The words of each arm's program to its model before and beside the task, as the first request of its own turns has it: for run.json. Nothing for
 * arms of other agents.
 */
export async function programsSeen(store: Store, runId: number): Promise<Readonly<Record<string, unknown>>> {
  const first = armsOf(store, runId).flatMap(({ id, name }) => {
    const row = firstProgramCall(store, runId, id);
    return row && (DIALECT_NAMES as readonly string[]).includes(row.dialect) ? [{ name, row }] : [];
  });
  if (first.length === 0) return {};
  const { sideOf } = await import('../../agent/gateway/routes.ts');
  const seen = first.map(({ name, row }) => {
    const dialect = row.dialect as DialectName;
    const { items, rest } = storedSchema.parse(JSON.parse(unpacked(row.request).toString('utf8')));
    const list = DIALECTS[dialect].historyIn;
    const { messages, tools, parameters } = sideOf(dialect).read({ ...rest, [list]: items });
    const system = messages.filter(({ role }) => role === 'system').map(({ content }) => textIn(content));
    const text = system.join('\n\n');
    const call = endedCalls(store, row.attempt_id).findLast((one) => one.call === row.call);
    const usage = call === undefined ? null : callOf(call).usage;
    const says = {
      ...{ dialect, model: row.model },
      system: { sha256: sha256(text), text },
      tools: tools.map((tool) => tool.function.name),
      parameters,
      /** Tokens of the first request, with the task. */
      first_request_tokens: usage && usage.input + usage.cacheRead + usage.cacheWrite,
    };
    return [name, says] as const;
  });
  return Object.fromEntries(seen);
}

const textIn = (content: Message['content']): string =>
  typeof content === 'string' ? content : JSON.stringify(content);

// Answers for `--model replay:RUN`.

const failureSchema = z.looseObject({
  success: z.literal(false),
  error: z.enum(MODEL_ERROR_CODES),
  message: z.string(),
  metadata: z.looseObject({ kind: z.string().optional() }).optional(),
});
const headersSchema = z.record(z.string(), z.string());

const failureOf = (text: string | null): ModelErrorResponse | null =>
  text === null ? null : (failureSchema.parse(JSON.parse(text)) as ModelErrorResponse);

/** The message as the model said it, without the record's additions. */
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
    thread: row.thread,
    request: body,
    answer: {
      end: row.answer,
      status: row.status,
      bytes: unpacked(row.response),
      headers: headersSchema.parse(JSON.parse(row.headers)),
    },
    message: messageOf(row, data),
    failure: failureOf(row.failure),
    tries: (tries.get(row.call) ?? []).map(callOf),
  }));
}
