/** Predictions in every form that tools of the field write (reference grading.md section 2), read with the harness's rules. Pure. */
import { kindOf } from '../base/text/kindOf.ts';
import type { Instance } from '../dataset/instance.ts';

export interface Prediction {
  readonly instance_id: string;
  readonly model_name_or_path: string;
  /** null: the file says so, or has no patch; counts as empty. */
  readonly model_patch: string | null;
}

export type PredictionsResult =
  | { readonly ok: true; readonly predictions: readonly Prediction[]; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

interface Entry {
  readonly value: unknown;
  /** "line 3" or "entry 3" or "\"django__django-1\"". */
  readonly place: string;
  /** The key of an object keyed by id. */
  readonly key?: string;
}

/** The harness writes this into paths where a prediction names no model. */
const NO_MODEL = 'None';
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Multi-SWE-bench has no id column. */
function idOf(row: Record<string, unknown>, key: string | undefined): string | undefined {
  const own = text(row.instance_id);
  if (own !== undefined) return own;
  if (text(row.org) && text(row.repo) && row.number !== undefined)
    return `${row.org}__${row.repo}-${row.number}`;
  return key;
}

const PATCH_KEYS = ['model_patch', 'patch', 'fix_patch'] as const;
const MODEL_KEYS = ['model_name_or_path', 'prefix'] as const;

type Read = { ok: true; prediction: Prediction; warnings: string[] } | { ok: false; problem: string };

function readEntry({ value, place, key }: Entry): Read {
  if (!isRecord(value))
    return { ok: false, problem: `${place} is ${kindOf(value)}; each prediction must be an object` };
  const id = idOf(value, key);
  if (id === undefined) return { ok: false, problem: `${place} has no instance_id` };
  const warnings: string[] = [];
  if (key !== undefined && id !== key)
    warnings.push(`${place} calls itself "${id}"; the inner id counts, as in the harness`);
  const patchKey = PATCH_KEYS.find((name) => name in value);
  const patch = patchKey === undefined ? null : value[patchKey];
  if (patch !== null && typeof patch !== 'string')
    return { ok: false, problem: `${place} (${id}): ${patchKey} is ${kindOf(patch)}, not text` };
  if (patchKey === undefined) warnings.push(`${place} (${id}) has no model_patch; it counts as empty`);
  const named = MODEL_KEYS.map((name) => value[name]).find((name) => name !== undefined && name !== null);
  if (named !== undefined && typeof named !== 'string')
    return { ok: false, problem: `${place} (${id}): model_name_or_path is ${kindOf(named)}, not text` };
  return {
    ok: true,
    warnings,
    prediction: { instance_id: id, model_name_or_path: named ? named : NO_MODEL, model_patch: patch },
  };
}

/** Python writes NaN and Infinity where it has them, as tools do in keys of their own (costs, scores); JSON has no such words. */
const PYTHON_WORD = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\bInfinity\b|\bNaN\b/gs;
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!/NaN|Infinity/.test(text)) throw error;
    return JSON.parse(text.replace(PYTHON_WORD, (found) => (found.startsWith('"') ? found : 'null')));
  }
}

function jsonl(body: string): { entries: Entry[]; problems: string[] } {
  const entries: Entry[] = [];
  const problems: string[] = [];
  for (const [at, line] of body.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      entries.push({ value: parseJson(line), place: `line ${at + 1}` });
    } catch (error) {
      problems.push(`line ${at + 1} is not JSON: ${(error as Error).message}`);
    }
  }
  return { entries, problems };
}

/** One prediction at the top of a .json file would read as an object keyed by id. */
const looksLikeOne = (value: Record<string, unknown>) =>
  typeof value.instance_id === 'string' || PATCH_KEYS.some((name) => typeof value[name] === 'string');

function json(body: string): { entries: Entry[]; problems: string[] } {
  let value: unknown;
  try {
    value = parseJson(body);
  } catch (error) {
    return { entries: [], problems: [`it is not JSON: ${(error as Error).message}`] };
  }
  if (Array.isArray(value))
    return { entries: value.map((item, at) => ({ value: item, place: `entry ${at + 1}` })), problems: [] };
  if (!isRecord(value))
    return {
      entries: [],
      problems: [`it holds ${kindOf(value)}; predictions are a list, or an object by instance id`],
    };
  if (looksLikeOne(value))
    return {
      entries: [],
      problems: ['it holds a single prediction; put it into a list, or write one object a line as .jsonl'],
    };
  return {
    entries: Object.entries(value).map(([key, item]) => ({ value: item, place: `"${key}"`, key })),
    problems: [],
  };
}

/** `name` decides by its suffix, as in the harness, and stands in messages. */
export function parsePredictions(body: string, name: string): PredictionsResult {
  const bare = body.startsWith('﻿') ? body.slice(1) : body;
  const form = /\.(json|jsonl|ndjson)$/.exec(name)?.[1];
  if (form === undefined)
    return { ok: false, problems: [`${name}: predictions must be a .json or .jsonl file, or the word gold`] };
  const { entries, problems: unreadable } = form === 'json' ? json(bare) : jsonl(bare);
  const problems = unreadable.map((problem) => `${name}: ${problem}`);
  const warnings: string[] = [];
  const byId = new Map<string, Prediction>();
  for (const entry of entries) {
    const read = readEntry(entry);
    if (!read.ok) {
      problems.push(`${name}: ${read.problem}`);
      continue;
    }
    warnings.push(...read.warnings.map((warning) => `${name}: ${warning}`));
    const { prediction } = read;
    if (byId.has(prediction.instance_id))
      warnings.push(`${name}: ${entry.place} repeats ${prediction.instance_id}; the later one counts`);
    byId.set(prediction.instance_id, prediction);
  }
  if (problems.length > 0) return { ok: false, problems };
  if (byId.size === 0) return { ok: false, problems: [`${name}: it holds no predictions`] };
  return { ok: true, predictions: [...byId.values()], warnings };
}

export const goldPredictions = (instances: readonly Instance[]): Prediction[] =>
  instances.map(({ instance_id, patch }) => ({
    instance_id,
    model_name_or_path: 'gold',
    model_patch: patch,
  }));

/** The harness refuses the whole run for one unknown id, even when only others are asked for. */
export function unknownIds(predictions: readonly Prediction[], instances: ReadonlySet<string>): string[] {
  return predictions.map(({ instance_id }) => instance_id).filter((id) => !instances.has(id));
}

export const isEmptyPatch = (patch: string | null): patch is null | '' => patch === null || patch === '';
