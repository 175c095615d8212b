/**
 * Columns under the names of SWE-bench become an Instance; everything else is kept in `extra`. Text stays text; nothing in a row is ever
 * rendered or evaluated here.
 */

import { type ZodError, z } from 'zod';
import { parseReference } from '../../base/imageReference.ts';
import { isRecord } from '../../base/isRecord.ts';
import { PythonLiteralError, parsePythonLiteral } from '../../base/python/literal.ts';
import { sha256 } from '../../base/sha256.ts';
import { stringOf } from '../../base/text/contentText.ts';
import { kindOf } from '../../base/text/errorText.ts';
import { type Instance, imageOf, instanceSchema } from '../instance.ts';
export type RawRow = Readonly<Record<string, unknown>>;

export type NormalisedRow =
  | {
      readonly ok: true;
      readonly instance: Instance;
      /** Clauses about columns that are no text: "difficulty is an object". */
      readonly odd?: readonly string[];
    }
  | { readonly ok: false; readonly instanceId?: string; readonly messages: readonly string[] };

const TEXT_COLUMNS = [
  'instance_id',
  'repo',
  'base_commit',
  'problem_statement',
  'hints_text',
  'patch',
  'test_patch',
  'version',
  'created_at',
  'environment_setup_commit',
  'difficulty',
  'eval_script',
  'log_parser',
  'eval_type',
] as const;
/** Columns that nobody grades by: an object stays among the other columns (the difficulty of SWE-bench-Live). */
const ABOUT_COLUMNS = ['hints_text', 'created_at', 'difficulty'] as const;
const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;

/** Lists of tests are checked as they are read, with their position; other columns stay as they are. */
const columnsSchema = instanceSchema.extend({
  FAIL_TO_PASS: z.unknown(),
  PASS_TO_PASS: z.unknown(),
  extra: z.unknown(),
});

const COLUMNS: ReadonlySet<string> = new Set([...TEXT_COLUMNS, ...IMAGE_COLUMNS]);

/** A commit or ref is an argument of git, so it must not look like an option. */
const GIT_REVISION = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}$/;

/** An id that makes a name of an image; any other is tried. */
const USUAL_ID = /^(?=.{1,200}$)[A-Za-z0-9]+(?:(?:__|[._-])[A-Za-z0-9]+)*$/;

function describe(error: ZodError, raw: RawRow): string[] {
  return error.issues.map((issue) => {
    const column = String(issue.path[0] ?? 'row');
    const value = raw[column];
    if (value === undefined || value === null) return `${column} is missing`;
    if (issue.code === 'invalid_type') return `${column} must be a string, not ${kindOf(value)}`;
    return `${column} ${JSON.stringify(String(value).slice(0, 80))}: ${issue.message}`;
  });
}

/** `kind` is the name of a suite; undefined for SWE-bench. `headIsBase`: rows name no commit that can be looked up. */
export function normaliseColumns(raw: RawRow, kind?: string, headIsBase = false): NormalisedRow {
  const used = new Set<string>();
  const messages: string[] = [];

  const tests: Record<string, string[]> = {};
  for (const column of ['FAIL_TO_PASS', 'PASS_TO_PASS']) {
    const spelling = raw[column] === undefined ? column.toLowerCase() : column;
    used.add(column).add(spelling);
    const parsed = parseTestIds(raw[spelling]);
    tests[column] = parsed.ok ? parsed.ids : [];
    if (!parsed.ok) messages.push(`${spelling} ${parsed.message}`);
  }

  const image = IMAGE_COLUMNS.map((name) => raw[name]).find((value) => value != null && value !== '');
  const candidate: Record<string, unknown> = { ...tests };
  const odd: readonly string[] = ABOUT_COLUMNS.filter(
    (name) => raw[name] != null && typeof raw[name] !== 'string',
  );
  for (const column of TEXT_COLUMNS)
    if (raw[column] != null && !odd.includes(column)) candidate[column] = raw[column];
  // An empty eval script, parser or type means that the row has none.
  for (const column of ['eval_script', 'log_parser', 'eval_type'])
    if (candidate[column] === '') delete candidate[column];
  if (image !== undefined) candidate.image = image;
  if (kind !== undefined) candidate.kind = kind;
  // A converted row states what it is found to be again.
  if (kind !== undefined && raw.kind === kind) used.add('kind');
  const others = Object.keys(raw).filter(
    (name) => !used.has(name) && (!COLUMNS.has(name) || odd.includes(name)),
  );
  candidate.extra = Object.fromEntries(others.map((name) => [name, raw[name]]));

  const parsed = columnsSchema.safeParse(candidate);
  if (!parsed.success) messages.push(...describe(parsed.error, { ...candidate, image }));
  // The name is sent over the network, so an invalid one is refused here, with its line.
  const named = typeof image === 'string' ? parseReference(image) : null;
  if (named?.ok === false) messages.push(`image ${named.message}`);
  if (
    parsed.success &&
    image === undefined &&
    !USUAL_ID.test(parsed.data.instance_id) &&
    !parseReference(imageOf(parsed.data)).ok
  )
    messages.push(
      `instance_id ${JSON.stringify(parsed.data.instance_id)} makes no image name, and the row names no image`,
    );
  const commit = stringOf(candidate.base_commit);
  if (commit !== '' && !GIT_REVISION.test(commit))
    messages.push(`base_commit ${JSON.stringify(commit.slice(0, 80))} is not a commit`);
  if (!headIsBase && (candidate.base_commit === undefined || candidate.base_commit === ''))
    messages.push('base_commit is missing: without it later history cannot be sealed off');
  if (parsed.success && messages.length === 0)
    return {
      ...{ ok: true, instance: parsed.data as Instance },
      ...(odd.length > 0 && { odd: odd.map((name) => `${name} is ${kindOf(raw[name])}`) }),
    };
  return {
    ok: false,
    messages,
    ...(typeof candidate.instance_id === 'string' && { instanceId: candidate.instance_id }),
  };
}

// FAIL_TO_PASS and PASS_TO_PASS in every form datasets store them: list, JSON text, Python literal text, map keyed by test.

type TestIds = { ok: true; ids: string[] } | { ok: false; message: string };

function parseText(text: string): { value: unknown } | { message: string } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    // not JSON: a Python literal, or nothing we know
  }
  try {
    return { value: parsePythonLiteral(text) };
  } catch (error) {
    if (!(error instanceof PythonLiteralError)) throw error;
    return { message: `is neither a JSON list nor a Python list (${error.message})` };
  }
}

/** `undefined` and `null` are an absent column, hence no ids. Order is kept: the official reports depend on it. */
export function parseTestIds(value: unknown): TestIds {
  if (value === undefined || value === null || value === '') return { ok: true, ids: [] };
  if (typeof value === 'string') {
    const parsed = parseText(value);
    if ('message' in parsed) return { ok: false, message: parsed.message };
    if (typeof parsed.value === 'string') return { ok: false, message: 'is one string, not a list of tests' };
    return parseTestIds(parsed.value);
  }
  if (Array.isArray(value)) {
    const odd = value.findIndex((id) => typeof id !== 'string');
    if (odd >= 0)
      return { ok: false, message: `has ${kindOf(value[odd])} at position ${odd + 1}, not a string` };
    return { ok: true, ids: value as string[] };
  }
  if (typeof value === 'object') return { ok: true, ids: Object.keys(value) };
  return { ok: false, message: `is ${kindOf(value)}, not a list of tests` };
}

// Hashes of rows: equal where the same rows came in another form of file.

/**
 * JSON with sorted keys: the same row has the same hash whether it was read from lines, an array or Parquet. Keys that look like numbers come
 * first, in their order, as in every object of JavaScript. Undefined for what JSON does not have.
 */
const canonical = (value: unknown): string | undefined => JSON.stringify(inOrder(value));

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.some(isObject) ? value.map(inOrder) : value;
  if (!isRecord(value)) return value;
  return Object.fromEntries(sortedKeys(value).map((key) => [key, inOrder(value[key])]));
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** Most rows of a dataset have the same keys. */
let last: { readonly keys: readonly string[]; readonly sorted: readonly string[] } = { keys: [], sorted: [] };

function sortedKeys(value: object): readonly string[] {
  const keys = Object.keys(value);
  if (keys.length <= 1) return keys;
  if (keys.length === last.keys.length && keys.every((key, i) => key === last.keys[i])) return last.sorted;
  last = { keys, sorted: keys.toSorted() };
  return last.sorted;
}

const hashOf = (value: unknown) => sha256(canonical(value)!);

/** Hash of the whole normalised row. The kind follows from the row. */
export const rowHashOf = ({ kind: _, ...row }: Instance): string => hashOf(row);

/** Hash of the columns that decide a verdict. Revisions of a dataset differ in exactly these. */
export const gradingHashOf = (
  row: Pick<Instance, 'eval_script' | 'FAIL_TO_PASS' | 'PASS_TO_PASS' | 'test_patch'>,
): string => hashOf([row.eval_script ?? null, row.FAIL_TO_PASS, row.PASS_TO_PASS, row.test_patch]);
