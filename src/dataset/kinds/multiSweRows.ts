/** Multi-SWE-bench: no id column, issues apart from the task, tests as maps. */
import { isRecord } from '../../base/isRecord.ts';
import type { DatasetKind, RawRow } from './datasetKind.ts';

const FIXED = ['fixed_tests', 'f2p_tests', 's2p_tests', 'n2p_tests'] as const;
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function columns(raw: RawRow): RawRow {
  const { org, number } = raw;
  // A row that was converted before names its repository with its owner.
  if (raw.instance_id != null) return raw;
  const repo = textOf(raw.repo);
  const issues = Array.isArray(raw.resolved_issues) ? raw.resolved_issues.filter(isRecord) : [];
  const statement = issues.length > 0 ? issues : [raw];
  const fixed = FIXED.map((name) => raw[name]).filter(isRecord);
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

export const multiSwe: DatasetKind = {
  name: 'multi-swe-bench',
  rows: { is: (raw) => raw.org != null && raw.number != null, columns },
  container: ({ repo }) => ({ cwd: `/home/${repo.split('/').at(-1)!}` }),
};
