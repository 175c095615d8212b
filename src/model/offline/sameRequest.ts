/**
 * Whether a program asks what it asked in the recording. A second run of it has other ids, dates, durations and temporary names; these
 * count as equal. Pure.
 */
import { isRecord } from '../../base/isRecord.ts';

/** What names a session or a person, and nothing of what is said. */
const UNSAID = new Set([
  'prompt_cache_key',
  'client_metadata',
  'metadata',
  'user',
  'safety_identifier',
  'session_id',
  'sessionId',
  'user_prompt_id',
]);

const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}';

/** From the longest form to the shortest. */
const VARIABLE: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d{2}:?\d{2})?)?/g, '‹date›'],
  [new RegExp(`\\b\\d{1,2} ${MONTH} \\d{4}\\b`, 'g'), '‹date›'],
  [new RegExp(`\\b${MONTH} {1,4}\\d{1,4}(?:,? \\d{4})?\\b`, 'g'), '‹date›'],
  [/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b/g, '‹day›'],
  [/\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AP]M)?\b/g, '‹time›'],
  [/\b\d{1,9}(?:\.\d{1,9})? ?(?:ms|µs|us|ns|s|sec|secs|seconds?|min|minutes?|hours?)\b/g, '‹duration›'],
  [
    /(seconds|duration|elapsed|wall_time|time_ms|latency_ms)("?[:=] ?)\d{1,12}(?:\.\d{1,12})?/gi,
    '$1$2‹duration›',
  ],
  [/\b(pid|pids|pgid|process id|session id|session)(:? |=)\d{1,9}\b/gi, '$1$2‹number›'],
  [/\/tmp\/[\w.+-]{1,60}/g, '/tmp/‹name›'],
  [/\b0x[0-9a-f]{1,32}\b/gi, '‹hex›'],
  [/\bID: [0-9a-f]{6,32}\b/g, 'ID: ‹hex›'],
  [/\b\d{10,20}(?:\.\d{1,9})?\b/g, '‹number›'],
];
const HEX = /\b[0-9a-f]{6,128}\b/gi;
const TOKEN = /\b[A-Za-z0-9_-]{16,200}\b/g;

const mixed = (text: string): boolean => /\d/.test(text) && /[A-Za-z]/.test(text);
/** A nonce: no word, no path, no name in snake case has all three. */
const random = (text: string): boolean => /\d/.test(text) && /[A-Z]/.test(text) && /[a-z]/.test(text);

const UUID = [8, 4, 4, 4, 12];

/** Also behind a prefix, as in msg_…. */
function isUuid(text: string): boolean {
  const parts = text.slice(text.lastIndexOf('_') + 1).split('-');
  return parts.length === UUID.length && parts.every((part, at) => part.length === UUID[at]);
}

export function withoutVariable(text: string): string {
  let out = text.replace(TOKEN, (word) => (random(word) || isUuid(word) ? '‹id›' : word));
  for (const [pattern, name] of VARIABLE) out = out.replace(pattern, name);
  return out.replace(HEX, (word) => (mixed(word) ? '‹hex›' : word));
}

/** Gives requests the form in which they are compared. Each repeats the conversation: a text is looked at once. */
export function createComparison(): (request: unknown) => unknown {
  const known = new Map<string, string>();
  const compared = (text: string): string => {
    const found = known.get(text) ?? withoutVariable(text);
    known.set(text, found);
    return found;
  };
  const comparable = (value: unknown): unknown => {
    if (typeof value === 'string') return compared(value);
    if (Array.isArray(value)) return value.map(comparable);
    if (!isRecord(value)) return value;
    const kept = Object.entries(value).filter(([key]) => !UNSAID.has(key));
    return Object.fromEntries(
      kept.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, comparable(one)]),
    );
  };
  return comparable;
}

export interface RequestDifference {
  /** messages[3].content */
  readonly at: string;
  readonly recorded: string | null;
  readonly now: string | null;
}

const textOf = (value: unknown): string | null =>
  value === undefined ? null : typeof value === 'string' ? value : (JSON.stringify(value) ?? null);

/** The first place where two comparable requests differ. */
export function requestDifference(recorded: unknown, now: unknown, at = ''): RequestDifference | null {
  if (recorded === now) return null;
  if (Array.isArray(recorded) && Array.isArray(now)) {
    for (let index = 0; index < Math.max(recorded.length, now.length); index += 1) {
      const found = requestDifference(recorded[index], now[index], `${at}[${index}]`);
      if (found) return found;
    }
    return null;
  }
  if (isRecord(recorded) && isRecord(now)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
      const found = requestDifference(recorded[key], now[key], at === '' ? key : `${at}.${key}`);
      if (found) return found;
    }
    return null;
  }
  return { at: at || 'the request', recorded: textOf(recorded), now: textOf(now) };
}

const AROUND = 60;

/** The first place where two texts differ, with what stands around it. */
export function firstDifference(recorded: string, now: string): string {
  let at = 0;
  const end = Math.min(recorded.length, now.length);
  while (at < end && recorded[at] === now[at]) at += 1;
  const from = Math.max(0, at - AROUND);
  const cut = (text: string) => JSON.stringify(text.slice(from, at + AROUND).toWellFormed());
  return `differs at character ${at}: recorded ${cut(recorded)}, now ${cut(now)}`;
}
