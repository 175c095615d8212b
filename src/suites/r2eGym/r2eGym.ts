/**
 * R2E-Gym: no id column, the commit that solved the task as JSON, and the statuses that its tests are to have. The image keeps the tests and the
 * command that runs them. An instance is resolved when the statuses in the short summary of pytest are exactly the expected ones: no test more,
 * none less, each with its status.
 */

import { z } from 'zod';
import { keyed } from '../../base/keyed.ts';
import { strip } from '../../base/python/text.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { RawRow } from '../../dataset/read/row.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import {
  type Judged,
  listsOf,
  lostResult,
  notGradable,
  planOwnRules,
  type SetVerdict,
  textInside,
} from '../../grading/ownRules.ts';
import { MARK } from '../../grading/readLog.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';

export const r2eGym: Suite = {
  rows: { columns, headIsBase: true },
  needs: () => ({
    container: { cwd: '/testbed', env: { PATH: R2E_PATH }, startupCommand: r2eSetup('hide') },
  }),
  grading,
};

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

/**
 * The patch by which the suite checks its own images: files of Python alone, tests among them. '' where it cannot be read (observed:
 * tests/suites/r2eGym/r2eGym.test.ts).
 */
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

/** The text between the first [ISSUE] and the last [/ISSUE]; else all of it. */
export function r2eStatement(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  const from = text.indexOf(OPEN);
  const to = text.lastIndexOf(CLOSE);
  return from >= 0 && to >= from + OPEN.length ? text.slice(from + OPEN.length, to) : text;
}

const decoloured = (name: string): string => name.replace(/\x1b\[\p{Nd}+m/gu, '');
const expectedSchema = keyed(z.string());

/** Names as the suite compares them: without colours, and without what stands behind the first " - ". The last one in their order wins. */
const r2eNames = (statuses: Iterable<readonly [string, string]>): Map<string, string> => {
  const plain = new Map([...statuses].map(([name, status]) => [decoloured(name), status]));
  const sorted = [...plain.keys()].toSorted((a, b) => (a < b ? -1 : 1));
  return new Map(sorted.map((name) => [name.split(' - ', 1)[0]!, plain.get(name)!]));
};

/** Status by test; undefined where the row does not say it (observed: tests/suites/r2eGym/r2eGym.test.ts). */
export function r2eExpected(text: unknown): Map<string, string> | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return r2eNames(Object.entries(expectedSchema.parse(JSON.parse(text))));
  } catch {
    return undefined;
  }
}

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

// The set-up of R2E-Gym in a container of its images before an agent works there, or tests run: the same links, the same clean-up.

const R2E_PATH =
  '/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Images of its first releases also held these in the work tree. */
const NOT_FOR_AGENTS = [
  'run_tests.sh',
  'syn_issue.json',
  'expected_test_output.json',
  'execution_result.json',
  'parsed_commit.json',
  'modified_files.json',
  'modified_entities.json',
  'r2e_tests',
];

const LINKS = [
  'cd /testbed || exit 1',
  'ln -s /testbed/.venv /root/.venv',
  'ln -s /testbed/.venv/bin/python /root/.local/bin/python',
  'ln -s /testbed/.venv/bin/python /root/.local/bin/python3',
  'find /testbed/.venv/bin -type f -executable -exec ln -sf {} /root/.local/bin/ \\;',
  'timeout 120 uv pip install chardet',
  "find . -name '*.pyc' -delete",
  "find . -name '__pycache__' -exec rm -rf {} +",
];

const MOVES = [
  "find /r2e_tests -name '*.pyc' -delete",
  "find /r2e_tests -name '__pycache__' -exec rm -rf {} +",
  'mv /testbed/run_tests.sh /root/run_tests.sh',
  'mv /testbed/r2e_tests /root/r2e_tests',
  'mv /r2e_tests /root/r2e_tests',
  'ln -s /root/r2e_tests /testbed/r2e_tests',
];

/** The suite only moves the tests to /root, where an agent could read them. Here its container loses them: they run in another one. */
const HIDES = [`rm -rf /r2e_tests ${NOT_FOR_AGENTS.map((name) => `/testbed/${name}`).join(' ')}`];

/** As in the suite, nothing of it has to succeed: images differ in what they have. */
const r2eSetup = (tests: 'hide' | 'run'): string =>
  [
    LINKS[0],
    ...[...LINKS.slice(1), ...(tests === 'hide' ? [] : MOVES)].map(
      (command) => `${command} >/dev/null 2>&1 || true`,
    ),
    ...(tests === 'hide' ? HIDES : []),
  ].join('\n');

const FOLDER = '/swebatch-r2e';
const LOG = `${FOLDER}/tests.log`;

/** The repositories whose logs the suite has a parser for; it is the same for all of them. */
const REPOSITORIES = [
  ...['sympy', 'pandas', 'pillow', 'scrapy', 'pyramid', 'tornado', 'datalad'],
  ...['aiohttp', 'coveragepy', 'numpy', 'orange3'],
];

export const R2E_SCRIPT = [
  r2eSetup('run'),
  `git apply --whitespace=fix ${FOLDER}/patch.diff || echo '${MARK.applyFailed}'`,
  `bash /root/run_tests.sh > ${LOG} 2>&1`,
  '',
].join('\n');

const SUMMARY = 'short test summary info';
const STATUSES = ['PASSED', 'FAILED', 'ERROR'] as const;

/** A name is what stands behind the first `::`, further ones as dots. A line without any names the test "". */
const nameIn = (line: string): string => line.split('::').slice(1).join('.');

/** Statuses in the part between the first and the second such heading. */
export function r2eStatuses(raw: string): Map<string, string> {
  const log = raw.replace(/\x1b\[[0-9;]*m|\r/g, '');
  const found = new Map<string, string>();
  const part = log.split(SUMMARY, 2)[1];
  for (const line of strip(part ?? '').split('\n')) {
    const status = STATUSES.find((word) => line.includes(word));
    if (status === undefined) continue;
    const name = nameIn(line);
    found.set(status === 'PASSED' ? name : name.split(' - ', 1)[0]!, status);
  }
  return r2eNames(found);
}

export function judgeR2e(expected: ReadonlyMap<string, string>, log: string): SetVerdict {
  const found = r2eStatuses(log);
  const names = [...expected.keys()];
  const status = listsOf(
    { failToPass: [], passToPass: names },
    (name) => found.get(name) === expected.get(name),
  );
  return { resolved: found.size === names.length && status.PASS_TO_PASS.failure.length === 0, status };
}

function grading(instance: Instance, { harness }: SpecOptions): PlannedGrading {
  const { repo, extra } = instance;
  const expected = r2eExpected(extra.expected_output_json);
  if (!expected || expected.size === 0)
    return notGradable(instance, 'its expected_output_json names no status of a test');
  if (!REPOSITORIES.includes(repo))
    return notGradable(instance, `the suite has no log parser for its repository "${repo.slice(0, 80)}"`);
  return planOwnRules(
    {
      instance,
      script: R2E_SCRIPT,
      cwd: '/testbed',
      container: { cwd: '/testbed', env: { PATH: R2E_PATH } },
      decides: [...expected],
      files: (patch) => ({ [`${FOLDER}/patch.diff`]: patch }),
      judge: async (environment, run, { signal }): Promise<Judged> => {
        const printed = await textInside(environment, LOG, signal);
        const log = `${run.log}\n>>>>> tests.log\n${printed?.text ?? ''}`;
        if (printed === undefined) return lostResult('its tests were not run', log, true);
        if (!printed.whole) return lostResult('the log of its tests is too large to be read', log, true);
        if (!printed.text.includes(SUMMARY))
          return lostResult('its log has no short summary of pytest', log, true);
        const applied = !run.log.split('\n').includes(MARK.applyFailed);
        return { ok: true, verdict: judgeR2e(expected, printed.text), log, applied };
      },
    },
    harness,
  );
}
