/** R2E-Gym: no id column, the commit that solved the task as JSON, and the statuses that its tests are to have. */
import { z } from 'zod';
import type { DatasetKind, RawRow } from './datasetKind.ts';
import { R2E_PATH, r2eSetup } from './r2eSetup.ts';

const NAME = 'r2e-gym';

const lineSchema = z.object({ content: z.string(), type: z.enum(['context', 'added', 'deleted', 'note']) });
const rangeSchema = z.object({ start: z.number(), length: z.number().nullish() });
const pathSchema = z.object({ path: z.string() });
const hunkSchema = z.object({
  descriptor: z.object({ old_range: rangeSchema, new_range: rangeSchema, section: z.string() }),
  line_group: z.object({ all_lines: z.array(lineSchema) }),
});
const fileSchema = z.object({
  header: z.object({ file: pathSchema, misc_line: z.string().nullish() }),
  index_line: z
    .object({ old_commit_hash: z.string(), new_commit_hash: z.string(), mode: z.string() })
    .nullish(),
  is_binary_file: z.boolean().nullish(),
  binary_line: z.string().nullish(),
  minus_file: pathSchema.nullish(),
  plus_file: pathSchema.nullish(),
  hunks: z.array(hunkSchema).nullish(),
});
const commitSchema = z.object({ file_diffs: z.array(fileSchema) });
type FileDiff = z.infer<typeof fileSchema>;
type Hunk = z.infer<typeof hunkSchema>;

const MARKS = { context: ' ', added: '+', deleted: '-', note: '\\ ' } as const;
const rangeText = ({ start, length }: z.infer<typeof rangeSchema>): string =>
  length == null ? `${start}` : `${start},${length}`;

function hunkText({ descriptor, line_group }: Hunk): string {
  const { old_range, new_range, section } = descriptor;
  const head = `@@ -${rangeText(old_range)} +${rangeText(new_range)} @@${section === '' ? '' : ` ${section}`}\n`;
  return head + line_group.all_lines.map(({ content, type }) => `${MARKS[type]}${content}\n`).join('');
}

function fileText({ header, index_line: index, minus_file, plus_file, ...file }: FileDiff): string {
  const { path } = header.file;
  return [
    `diff --git a/${path} b/${path}\n`,
    header.misc_line ? `${header.misc_line}\n` : '',
    index
      ? `index ${index.old_commit_hash}..${index.new_commit_hash}${index.mode === '' ? '' : ' '}${index.mode}\n`
      : '',
    file.is_binary_file ? `${file.binary_line ?? ''}\n` : '',
    minus_file && plus_file ? `--- ${minus_file.path}\n+++ ${plus_file.path}\n` : '',
    ...(file.hunks ?? []).map(hunkText),
  ].join('');
}

/** The patch by which the suite checks its own images: files of Python alone, tests among them. '' where it cannot be read. */
export function r2eGold(content: unknown): string {
  if (typeof content !== 'string') return '';
  try {
    const { file_diffs } = commitSchema.parse(JSON.parse(content));
    return file_diffs
      .filter(({ header }) => header.file.path.endsWith('.py'))
      .map(fileText)
      .join('');
  } catch {
    return '';
  }
}

const [OPEN, CLOSE] = ['[ISSUE]', '[/ISSUE]'];

/** What stands between the first [ISSUE] and the last [/ISSUE]; else all of it. */
export function r2eStatement(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  const from = text.indexOf(OPEN);
  const to = text.lastIndexOf(CLOSE);
  return from >= 0 && to >= from + OPEN.length ? text.slice(from + OPEN.length, to) : text;
}

const decoloured = (name: string): string => name.replace(/\x1b\[\p{Nd}+m/gu, '');
const expectedSchema = z.record(z.string(), z.string());

/** Names as the suite compares them: without colours, and without what stands behind the first " - ". The last one in their order wins. */
export const r2eNames = (statuses: Iterable<readonly [string, string]>): Map<string, string> => {
  const plain = new Map([...statuses].map(([name, status]) => [decoloured(name), status]));
  const sorted = [...plain.keys()].toSorted((a, b) => (a < b ? -1 : 1));
  return new Map(sorted.map((name) => [name.split(' - ', 1)[0]!, plain.get(name)!]));
};

/** Status by test; undefined where the row does not say it. */
export function r2eExpected(text: unknown): Map<string, string> | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return r2eNames(Object.entries(expectedSchema.parse(JSON.parse(text))));
  } catch {
    return undefined;
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

function columns(raw: RawRow): RawRow {
  if (raw.instance_id != null) return raw;
  return {
    ...raw,
    instance_id: `${raw.repo_name}-${raw.commit_hash}`,
    repo: raw.repo_name,
    problem_statement: r2eStatement(raw.problem_statement),
    patch: r2eGold(raw.parsed_commit_content),
    // Each of them is to have its status, whatever that is. Which of them fail before is not in the row.
    PASS_TO_PASS: [...(r2eExpected(raw.expected_output_json)?.keys() ?? [])],
  };
}

export const r2e: DatasetKind = {
  name: NAME,
  rows: {
    is: (raw) => raw.kind === NAME || [raw.repo_name, raw.docker_image, raw.commit_hash].every(isText),
    columns,
  },
  container: () => ({ cwd: '/testbed', env: { PATH: R2E_PATH }, startupCommand: r2eSetup('hide') }),
  baseIsHead: true,
};
