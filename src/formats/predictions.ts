/**
 * Predictions in every form that tools of the field write: an object by instance id (mini-swe-agent), a list, one object a line. The
 * rules are the official harness's: the suffix gives the form, the inner id and the later of two rows count, null is an empty patch. A
 * row without any patch is an error there too, and never an empty patch.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../base/isRecord.ts';
import { asciiJson } from '../base/python/json.ts';
import { kindOf } from '../base/text/errorText.ts';
import { instanceIdProblem } from '../base/text/instanceId.ts';
import {
  ForeignTextError,
  jsonEntries,
  parseForeignJson,
  type RawBody,
  readForeignFile,
  textOfBody,
} from './foreignFile.ts';
import { foreignId } from './foreignFormat.ts';

export interface Prediction {
  readonly instance_id: string;
  readonly model_name_or_path: string;
  /** null: the file says so; counts as empty. */
  readonly model_patch: string | null;
}

type PredictionsResult =
  | { readonly ok: true; readonly predictions: readonly Prediction[]; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

interface PredictionProblem {
  /** The faulty part: the text of the whole file or of a line, which is not JSON; the form of the file; the id of a row; a row. */
  readonly about: 'file' | 'line' | 'form' | 'id' | 'row';
  readonly line: number;
  /** The id of the instance whose prediction cannot be read; null where the file does not say it. */
  readonly id: string | null;
  /** The message without the file's name. */
  readonly message: string;
}

interface FoundPredictions {
  readonly predictions: readonly Prediction[];
  readonly warnings: readonly string[];
  readonly problems: readonly PredictionProblem[];
}

interface Entry {
  readonly value: unknown;
  readonly line: number;
  /** "line 3", "line 3, entry 2" or 'line 3, "django__django-1"'. */
  readonly place: string;
  /** The key of an object keyed by id. */
  readonly key?: string;
}

/** Names of files of predictions in a folder, in the order in which they are looked for. */
export const PREDICTIONS = ['preds.json', 'all_preds.jsonl', 'predictions.jsonl'];

/** The harness writes this into paths where a prediction names no model. */
export const NO_MODEL = 'None';
/** JSON can spell them (`\ud800`), and Python writes bytes that are not UTF-8 in this way. */
export const HALF_CHARACTERS =
  'the patch holds half characters, so it was not UTF-8: no file can hold them, and each becomes U+FFFD';
const PATCH_KEYS = ['model_patch', 'patch', 'fix_patch'] as const;
const MODEL_KEYS = ['model_name_or_path', 'prefix'] as const;

/** Multi-SWE-bench has no id column; SWE-bench-Live has the id in the key alone. */
function idOf(row: Record<string, unknown>, key: string | undefined): unknown {
  if (row.instance_id !== undefined)
    return typeof row.instance_id === 'string' ? foreignId(row.instance_id) : row.instance_id;
  if (typeof row.org === 'string' && typeof row.repo === 'string' && row.number !== undefined)
    return `${row.org}__${row.repo}-${row.number}`;
  return key === undefined ? key : foreignId(key);
}

type RowRead = { prediction: Prediction; warnings: string[] } | PredictionProblem;

function readRow({ value, place, line, key }: Entry): RowRead {
  const wrong = (about: PredictionProblem['about'], id: string | null, message: string) => ({
    about,
    line,
    id,
    message: `${place}${message}`,
  });
  if (!isRecord(value))
    return wrong('row', key ?? null, ` is ${kindOf(value)}; each prediction must be an object`);
  const id = idOf(value, key);
  if (id === undefined) return wrong('id', null, ' has no instance_id');
  if (typeof id !== 'string')
    return wrong('row', key ?? JSON.stringify(id), `: instance_id is ${kindOf(id)}, not text`);
  const noId = instanceIdProblem(id);
  if (noId !== null) return wrong('row', id, `: instance_id ${JSON.stringify(id)} ${noId}`);
  const inRow = (message: string) => wrong('row', id, `${id === key ? '' : ` (${id})`}: ${message}`);
  const patchKey = PATCH_KEYS.find((name) => name in value);
  if (patchKey === undefined) return inRow('there is no model_patch, patch or fix_patch');
  const patch = value[patchKey];
  if (patch !== null && typeof patch !== 'string') return inRow(`${patchKey} is ${kindOf(patch)}, not text`);
  const named = MODEL_KEYS.map((name) => value[name]).find((name) => name !== undefined && name !== null);
  if (named !== undefined && typeof named !== 'string')
    return inRow(`model_name_or_path is ${kindOf(named)}, not text`);
  return {
    prediction: { instance_id: id, model_name_or_path: named || NO_MODEL, model_patch: patch },
    warnings: [
      ...(key !== undefined && id !== foreignId(key)
        ? [`${place} calls itself "${id}"; the inner id counts, as in the harness`]
        : []),
      ...(patch?.isWellFormed() === false ? [`${place} (${id}): ${HALF_CHARACTERS}`] : []),
    ],
  };
}

type Entries = { readonly entries: readonly Entry[]; readonly problems: readonly PredictionProblem[] };

const nothing = (about: 'file' | 'form', line: number, message: string): Entries => ({
  entries: [],
  problems: [{ about, line, id: null, message }],
});

/** A file with more unreadable lines holds no predictions, and to read on takes minutes. Observed: tests/base/longText.test.ts. */
export const MOST_UNREADABLE = 1000;

function lineEntries(body: string): Entries {
  const entries: Entry[] = [];
  const problems: PredictionProblem[] = [];
  for (const [at, text] of body.split('\n').entries()) {
    if (text.trim() === '') continue;
    const line = at + 1;
    try {
      entries.push({ value: parseForeignJson(text).value, line, place: `line ${line}` });
    } catch (error) {
      if (!(error instanceof ForeignTextError)) throw error;
      problems.push({ about: 'line', line, id: null, message: `line ${line} is not JSON: ${error.message}` });
      if (problems.length < MOST_UNREADABLE) continue;
      const message = `${MOST_UNREADABLE} lines up to line ${line} are not JSON, so the rest was not read`;
      problems.push({ about: 'form', line, id: null, message });
      break;
    }
  }
  return { entries, problems };
}

/** One prediction at the top of a .json file would read as an object keyed by id. */
const looksLikeOne = (value: Record<string, unknown>) =>
  typeof value.instance_id === 'string' || PATCH_KEYS.some((name) => typeof value[name] === 'string');

function jsonFileEntries(body: string): Entries {
  let json: ReturnType<typeof parseForeignJson>;
  try {
    json = parseForeignJson(body);
  } catch (error) {
    if (!(error instanceof ForeignTextError)) throw error;
    return nothing('file', error.line, `it is not JSON: ${error.message}`);
  }
  const { value } = json;
  if (typeof value !== 'object' || value === null)
    return nothing(
      'form',
      1,
      `it holds ${kindOf(value)}; predictions are a list, or an object by instance id`,
    );
  if (isRecord(value) && looksLikeOne(value))
    return nothing(
      'form',
      1,
      'it holds a single prediction; put it into a list, or write one object a line as .jsonl',
    );
  return {
    entries: jsonEntries(json).map((entry, at) => ({
      ...entry,
      place: `line ${entry.line}, ${entry.key === undefined ? `entry ${at + 1}` : `"${entry.key}"`}`,
    })),
    problems: [],
  };
}

function entriesOf(body: RawBody, form: string): Entries {
  try {
    const text = textOfBody(body);
    return form === 'json' ? jsonFileEntries(text) : lineEntries(text);
  } catch (error) {
    if (!(error instanceof ForeignTextError)) throw error;
    return nothing('form', error.line, error.message);
  }
}

/** The predictions of a file, and its rows that cannot be read; undefined where its suffix is of no known form. */
export function readPredictions(body: RawBody, name: string): FoundPredictions | undefined {
  const form = /\.(json|jsonl|ndjson)$/.exec(name)?.[1];
  if (form === undefined) return undefined;
  const { entries, problems: unreadable } = entriesOf(body, form);
  const problems = [...unreadable];
  const warnings: string[] = [];
  const byId = new Map<string, Prediction>();
  for (const entry of entries) {
    const read = readRow(entry);
    if (!('prediction' in read)) {
      problems.push(read);
      continue;
    }
    warnings.push(...read.warnings);
    const { prediction } = read;
    if (byId.has(prediction.instance_id))
      warnings.push(`${entry.place} repeats ${prediction.instance_id}; the later one counts`);
    byId.set(prediction.instance_id, prediction);
  }
  return { predictions: [...byId.values()], warnings, problems };
}

/** Reads all or nothing: a row that cannot be read would be a lost result. `name` is used in messages. */
export function parsePredictions(body: RawBody, name: string): PredictionsResult {
  const found = readPredictions(body, name);
  if (found === undefined)
    return { ok: false, problems: [`${name}: predictions must be a .json or .jsonl file, or the word gold`] };
  if (found.problems.length > 0)
    return {
      ok: false,
      problems: found.problems
        .toSorted((a, b) => a.line - b.line)
        .map(({ message }) => `${name}: ${message}`),
    };
  if (found.predictions.length === 0) return { ok: false, problems: [`${name}: it holds no predictions`] };
  return {
    ok: true,
    predictions: found.predictions,
    warnings: found.warnings.map((warning) => `${name}: ${warning}`),
  };
}

/** The predictions in the first file that lies in one of these folders, by instance. A file that cannot be read is a problem. */
export function predictionsIn(
  folders: readonly string[],
  problems: string[],
): ReadonlyMap<string, Prediction> {
  const files = folders.flatMap((folder) => PREDICTIONS.map((name) => join(folder, name)));
  const file = files.find(existsSync);
  const read = file === undefined ? undefined : parsePredictions(readForeignFile(file), file);
  if (read?.ok === false) problems.push(...read.problems);
  return new Map(read?.ok ? read.predictions.map((each) => [each.instance_id, each]) : []);
}

export const isEmptyPatch = (patch: string | null): patch is null | '' => patch === null || patch === '';

/** mini-swe-agent's form: an object by instance id. */
export const predsJson = (predictions: readonly Prediction[]): string =>
  `${asciiJson(Object.fromEntries(predictions.map((p) => [p.instance_id, p])))}\n`;

/** One object a line and no blank line, on which the official reader fails. */
export const predsJsonl = (predictions: readonly Prediction[]): string =>
  predictions.map((p) => `${asciiJson(p, 0)}\n`).join('');
