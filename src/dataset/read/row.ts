/**
 * A raw dataset row becomes an Instance: columns of the official datasets and of their relatives under one set of names, everything
 * else kept in `extra`. Text stays text; nothing in a row is ever rendered or evaluated here.
 */

import type { ZodError } from 'zod';
import { parseReference } from '../../base/imageReference.ts';
import { isRecord } from '../../base/isRecord.ts';
import { sha256 } from '../../base/sha256.ts';
import { kindOf } from '../../base/text/kindOf.ts';
import { type Instance, imageOf, instanceSchema } from '../instance.ts';
import type { RawRow } from '../kinds/datasetKind.ts';
import { kindOfRow } from '../kinds/datasetKinds.ts';
import { parseTestIds } from './testIds.ts';

export type NormalisedRow =
  | { readonly ok: true; readonly instance: Instance }
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
const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;
const MULTI_SWE_FIXED = ['fixed_tests', 'f2p_tests', 's2p_tests', 'n2p_tests'] as const;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Some columns of SWE-bench Pro arrive as JSON text of a string. */
function unquoted(value: unknown): string {
  const text = textOf(value);
  if (!/^".*"$/s.test(text)) return text;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'string' ? parsed : text;
  } catch {
    return text;
  }
}

/** SWE-bench Pro: its prompt is the statement with requirements and interface below it; the image is a tag of one repository. */
function fromPro(raw: RawRow): RawRow {
  const parts = [unquoted(raw.problem_statement)];
  if (textOf(raw.requirements)) parts.push(`Requirements:\n${unquoted(raw.requirements)}`);
  if (textOf(raw.interface)) parts.push(`New interfaces introduced:\n${unquoted(raw.interface)}`);
  return {
    ...raw,
    problem_statement: typeof raw.problem_statement === 'string' ? parts.join('\n\n') : raw.problem_statement,
    image: `jefzda/sweap-images:${textOf(raw.dockerhub_tag)}`,
  };
}

/** Multi-SWE-bench: no id column, issues apart from the task, tests as maps. */
function fromMultiSwe(raw: RawRow): RawRow {
  const { org, repo, number } = raw;
  const issues = Array.isArray(raw.resolved_issues) ? raw.resolved_issues.filter(isRecord) : [];
  const statement = issues.length > 0 ? issues : [raw];
  const fixed = MULTI_SWE_FIXED.map((name) => raw[name]).filter(isRecord);
  return {
    ...raw,
    instance_id: `${org}__${repo}-${number}`,
    repo: `${org}/${repo}`,
    base_commit: isRecord(raw.base) ? raw.base.sha : undefined,
    problem_statement: statement.map((issue) => `${textOf(issue.title)}\n${textOf(issue.body)}`).join('\n\n'),
    hints_text: raw.hints,
    patch: raw.fix_patch,
    FAIL_TO_PASS: Object.assign({}, ...fixed),
    PASS_TO_PASS: raw.p2p_tests,
    image: `mswebench/${org}_m_${repo}:pr-${number}`.toLowerCase(),
  };
}

/** Most rows of SWE-bench-Live name no image; its convention differs from the official one only in the namespace. */
function fromLive(raw: RawRow): RawRow {
  const id = textOf(raw.instance_id).toLowerCase().replaceAll('__', '_1776_');
  return { ...raw, image: `starryzhang/sweb.eval.x86_64.${id}` };
}

function recognised(raw: RawRow): RawRow {
  if (raw.instance_id == null && raw.org != null && raw.number != null) return fromMultiSwe(raw);
  if (typeof raw.dockerhub_tag === 'string' && raw.image == null) return fromPro(raw);
  if (Array.isArray(raw.test_cmds) && IMAGE_COLUMNS.every((name) => raw[name] == null)) return fromLive(raw);
  return raw;
}

/** A commit or ref is an argument of git, so it must not look like an option. */
const GIT_REVISION = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}$/;

/** Only SWE-smith tasks may lack a commit, because they start from a branch named like the instance. */
const needsCommit = (raw: RawRow) => !textOf(raw.repo).startsWith('swesmith/');

function describe(error: ZodError, raw: RawRow): string[] {
  return error.issues.map((issue) => {
    const column = String(issue.path[0] ?? 'row');
    const value = raw[column];
    if (value === undefined || value === null) return `${column} is missing`;
    if (issue.code === 'invalid_type') return `${column} must be a string, not ${kindOf(value)}`;
    return `${column} ${JSON.stringify(String(value).slice(0, 80))}: ${issue.message}`;
  });
}

export function normaliseRow(given: unknown): NormalisedRow {
  if (!isRecord(given)) return { ok: false, messages: [`the row is ${kindOf(given)}, not an object`] };
  const kind = kindOfRow(given);
  const raw = kind?.rows ? kind.rows.columns(given) : recognised(given);
  const used = new Set<string>([...TEXT_COLUMNS, ...IMAGE_COLUMNS]);
  const messages: string[] = [];

  const tests: Record<string, string[]> = {};
  for (const column of ['FAIL_TO_PASS', 'PASS_TO_PASS']) {
    const spelling = raw[column] === undefined ? column.toLowerCase() : column;
    used.add(column).add(spelling);
    const parsed = parseTestIds(raw[spelling]);
    if (parsed.ok) tests[column] = parsed.ids;
    else messages.push(`${spelling} ${parsed.message}`);
  }

  const image = IMAGE_COLUMNS.map((name) => raw[name]).find((value) => value != null && value !== '');
  const candidate: Record<string, unknown> = { ...tests };
  for (const column of TEXT_COLUMNS) if (raw[column] != null) candidate[column] = raw[column];
  // An empty eval script, parser or type means that the row has none.
  for (const column of ['eval_script', 'log_parser', 'eval_type'])
    if (candidate[column] === '') delete candidate[column];
  if (image !== undefined) candidate.image = image;
  if (kind) candidate.kind = kind.name;
  candidate.extra = Object.fromEntries(Object.entries(raw).filter(([name]) => !used.has(name)));

  const parsed = instanceSchema.safeParse(candidate);
  if (!parsed.success) messages.push(...describe(parsed.error, { ...candidate, image }));
  // The name is sent over the network, so an invalid one is refused here, with its line.
  const named = typeof image === 'string' ? parseReference(image) : null;
  if (named?.ok === false) messages.push(`image ${named.message}`);
  if (parsed.success && image === undefined && !parseReference(imageOf(parsed.data)).ok)
    messages.push(
      `instance_id ${JSON.stringify(parsed.data.instance_id)} makes no image name, and the row names no image`,
    );
  const commit = textOf(candidate.base_commit);
  if (commit !== '' && !GIT_REVISION.test(commit))
    messages.push(`base_commit ${JSON.stringify(commit.slice(0, 80))} is not a commit`);
  if (needsCommit(raw) && (candidate.base_commit === undefined || candidate.base_commit === ''))
    messages.push('base_commit is missing: without it later history cannot be sealed off');
  if (parsed.success && messages.length === 0) return { ok: true, instance: parsed.data };
  return {
    ok: false,
    messages,
    ...(typeof candidate.instance_id === 'string' && { instanceId: candidate.instance_id }),
  };
}

/** JSON with sorted keys: the same row has the same hash whether it was read from lines, an array or Parquet. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, canonical(value[key])]),
  );
}
const hashOf = (value: unknown) => sha256(JSON.stringify(canonical(value)));

/** Hash of the whole normalised row. Its kind follows from the row. */
export const rowHashOf = ({ kind: _, ...row }: Instance): string => hashOf(row);

/** Hash of the columns that decide a verdict. Revisions of a dataset differ in exactly these. */
export const gradingHashOf = (
  row: Pick<Instance, 'eval_script' | 'FAIL_TO_PASS' | 'PASS_TO_PASS' | 'test_patch'>,
): string => hashOf([row.eval_script ?? null, row.FAIL_TO_PASS, row.PASS_TO_PASS, row.test_patch]);
