/**
 * The model traffic of a run as one file that another machine can replay: compressed, repeated texts stored once, secrets replaced.
 * `--model replay:FILE` reads it.
 *
 * The file consists of gzip members of JSON lines, so `zcat` shows it: one for each trial, the index, and a last one of fixed length with
 * the position of the index. Trials are read on demand, so memory does not grow with the run.
 */

import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { durationOrNull, tokenCount } from '../../base/plausible.ts';
import { MODEL_ERROR_CODES } from '../../model/model.ts';
import type { RecordedReply, ReplaySource } from '../../model/offline/replayed.ts';
import { nanoOrNull } from '../../money.ts';

export interface RecordedTrial {
  readonly arm: string;
  readonly instance_id: string;
  readonly epoch: number;
  /** 0 for the first recorded attempt of the trial: those that ended as infra, and the final one. */
  readonly attempt?: number;
  readonly replies: readonly RecordedReply[];
}

type RecordingFacts = Omit<RecordingIndex, 'format' | 'texts' | 'trials'>;

/** Shorter texts are not worth a reference. */
const SHARED_LENGTH = 64;
/** Starts a reference; a text that starts with it gets a second one. */
const MARK = '\0';

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

function eachText(value: unknown, see: (text: string) => void): void {
  if (typeof value === 'string') see(value);
  else if (typeof value === 'object' && value !== null)
    for (const inner of Object.values(value)) eachText(inner, see);
}

/** Keeps only hashes of texts that were seen once. */
function sharedTexts(trials: Iterable<RecordedTrial>): Map<string, number> {
  const seen = new Set<string>();
  const shared = new Map<string, number>();
  for (const { replies } of trials)
    eachText(replies, (text) => {
      if (text.length < SHARED_LENGTH || shared.has(text)) return;
      const hash = hashOf(text);
      if (seen.has(hash)) shared.set(text, shared.size);
      else seen.add(hash);
    });
  return shared;
}

const line = (value: string, level = 9): Buffer => gzipSync(`${value}\n`, { level });
/** Stored without compression, so that its length is always the same. */
const placeOf = (at: number): Buffer => line(String(at).padStart(20, '0'), 0);
const PLACE_BYTES = placeOf(0).length;

/** Reads the trials twice. */
export function* recordingOf(
  facts: RecordingFacts,
  trials: () => Iterable<RecordedTrial>,
  redact: (json: string) => string,
): Generator<Uint8Array> {
  const shared = sharedTexts(trials());
  const refer = (_key: string, value: unknown): unknown => {
    if (typeof value !== 'string') return value;
    const index = shared.get(value);
    return index !== undefined ? `${MARK}${index}` : value.startsWith(MARK) ? MARK + value : value;
  };
  const entries: RecordingIndex['trials'] = [];
  let at = 0;
  for (const { replies, ...trial } of trials()) {
    const member = line(redact(JSON.stringify(replies, refer)));
    entries.push({ attempt: 0, ...trial, at, bytes: member.length });
    at += member.length;
    yield member;
  }
  const index: RecordingIndex = {
    format: RECORDING_FORMAT,
    ...facts,
    texts: [...shared.keys()],
    trials: entries,
  };
  yield line(redact(JSON.stringify(index)));
  yield placeOf(at);
}

/** Throws an Error that says what is wrong with the file. */
export function openRecording(path: string) {
  const size = statSync(path).size;
  const wrong = (why: string): Error => new Error(`${path} is not a recording of swebatch: ${why}`);
  const read = (from: number, bytes: number): string => {
    const buffer = Buffer.alloc(bytes);
    const file = openSync(path, 'r');
    try {
      readSync(file, buffer, 0, bytes, from);
    } finally {
      closeSync(file);
    }
    return gunzipSync(buffer).toString('utf8');
  };
  const parse = <T>(what: string, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw wrong(`${what} cannot be read (${(error as Error).message.split('\n')[0]})`);
    }
  };
  if (size < 2 * PLACE_BYTES) throw wrong('it is too short');
  const place = parse('its end', () => Number(read(size - PLACE_BYTES, PLACE_BYTES)));
  if (!Number.isSafeInteger(place) || place < 0 || place >= size - PLACE_BYTES)
    throw wrong('it does not say where its index is');
  const index = parse('its index', () =>
    indexSchema.parse(JSON.parse(read(place, size - PLACE_BYTES - place))),
  );
  const resolve = (_key: string, value: unknown): unknown => {
    if (typeof value !== 'string' || !value.startsWith(MARK)) return value;
    if (value[1] === MARK) return value.slice(1);
    const text = index.texts[Number(value.slice(1))];
    if (text === undefined) throw new Error('a text that it refers to is missing');
    return text;
  };
  return {
    index,
    /** Replies of one arm, or of the first that has the instance. */
    source: (arm?: string): ReplaySource => ({
      repliesFor: async (instanceId, epoch, earlier = 0) => {
        const held = index.trials.filter((t) => t.instance_id === instanceId && t.epoch === epoch);
        const ofArm = arm ?? held[0]?.arm;
        const attempts = held.filter((t) => t.arm === ofArm);
        const trial = attempts[Math.min(earlier, attempts.length - 1)];
        if (!trial) return [];
        return parse(
          `the part of ${instanceId}`,
          () =>
            repliesSchema.parse(JSON.parse(read(trial.at, trial.bytes), resolve)) as readonly RecordedReply[],
        );
      },
    }),
  };
}

// The content of the file, checked when it is read, because it may come from another machine.

const RECORDING_FORMAT = 'swebatch-recording-1';

const nullable = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? null);
const text = nullable(z.string());
const nano = nullable(z.number()).transform((value) => (value === null ? null : nanoOrNull(value)));
// Absurd counts become unknown, as in the reply of a server.
const usage = nullable(
  z.object({
    input: tokenCount,
    cacheRead: tokenCount,
    cacheWrite: tokenCount,
    output: tokenCount,
    reasoning: tokenCount,
  }),
).catch(null);
const errorCode = z.enum(MODEL_ERROR_CODES);
const message = z.looseObject({
  role: z.enum(['system', 'user', 'assistant', 'tool', 'exit']),
  content: z.union([z.string(), z.null(), z.array(z.unknown())]).default(null),
});

const call = z.object({
  try: z.number().int(),
  state: z.enum(['ok', 'failed', 'aborted']),
  startedAt: z.number(),
  latencyMs: z.number().transform((ms) => durationOrNull(ms) ?? 0),
  statusCode: nullable(z.number().int()),
  errorCode: nullable(errorCode),
  errorMessage: text,
  modelAsked: z.string(),
  modelAnswered: text,
  responseId: text,
  fingerprint: text,
  finishReason: text,
  rawUsage: z.unknown(),
  usage,
  priceVersion: text,
  costNano: nano,
  providerCostNano: nano,
  requestBytes: z.number(),
  notes: z.array(z.string()),
});

const told = {
  failedTries: z.array(call).default([]),
  observed: z.array(message).default([]),
  begins: z.boolean().optional(),
};

const replySchema = z.union([
  z.object({
    ...told,
    failure: z.looseObject({
      success: z.literal(false),
      error: errorCode,
      message: z.string(),
      metadata: z.looseObject({ kind: z.string().optional() }).optional(),
    }),
  }),
  z.object({
    ...told,
    message,
    finishReason: text,
    modelId: text,
    responseId: text,
    rawUsage: z.unknown(),
    usage,
    costNano: nano,
    providerCostNano: nano,
    priceVersion: text,
  }),
]);

const repliesSchema = z.array(replySchema);

const indexSchema = z.object({
  format: z.literal(RECORDING_FORMAT),
  program: z.string(),
  run: z.string(),
  config_hash: z.string(),
  dataset_hash: z.string(),
  arms: z.array(z.object({ name: z.string(), model: z.string() })).min(1),
  /** Texts that occur more than once. */
  texts: z.array(z.string()),
  trials: z.array(
    z.object({
      arm: z.string(),
      instance_id: z.string(),
      epoch: z.number().int(),
      attempt: z.number().int().min(0).default(0),
      at: z.number().int().min(0),
      bytes: z.number().int().min(1),
    }),
  ),
});
type RecordingIndex = z.infer<typeof indexSchema>;
