/** Columns of SWE-bench Pro under the names of SWE-bench. */
import type { RawRow } from '../datasetKind.ts';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Some columns arrive as JSON text of a string. */
export function unquoted(value: unknown): string {
  const text = textOf(value);
  if (!/^".*"$/s.test(text)) return text;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'string' ? parsed : text;
  } catch {
    return text;
  }
}

const PUBLISHED = 'jefzda/sweap-images';
const LONGEST_TAG = 128;
/** Published under the whole name of its repository, unlike all others of it. */
const WHOLE_NAME = 'instance_element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan';

/** The tag as Pro's own tools make it from repository and id, for rows that state none. */
export function proTag(id: string, repo: string): string {
  const [owner = '', name = ''] = repo.toLowerCase().split('/');
  const hash = id.replaceAll('instance_', '');
  if (id === WHOLE_NAME) return `${owner}.element-web-${hash}`.slice(0, LONGEST_TAG);
  const short = owner.includes('element-hq') && name.includes('element-web') ? 'element' : name;
  return `${owner}.${short}-${hash.replace(/-vnan$/, '')}`.slice(0, LONGEST_TAG);
}

/** The prompt is the statement with requirements and interface below it. */
export function proColumns(raw: RawRow): RawRow {
  // A row that names its image was converted before: its statement is whole.
  if (raw.image != null) return raw;
  const parts = [unquoted(raw.problem_statement)];
  if (textOf(raw.requirements)) parts.push(`Requirements:\n${unquoted(raw.requirements)}`);
  if (textOf(raw.interface)) parts.push(`New interfaces introduced:\n${unquoted(raw.interface)}`);
  const tag = textOf(raw.dockerhub_tag) || proTag(textOf(raw.instance_id), textOf(raw.repo));
  return {
    ...raw,
    problem_statement: typeof raw.problem_statement === 'string' ? parts.join('\n\n') : raw.problem_statement,
    image: `${PUBLISHED}:${tag}`,
  };
}

export const isProRow = (raw: RawRow): boolean =>
  typeof raw.dockerhub_tag === 'string' ||
  (typeof raw.before_repo_set_cmd === 'string' && raw.selected_test_files_to_run !== undefined);
