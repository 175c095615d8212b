/** Errors in words: of something thrown, and of a value from a file. */
import type { z } from 'zod';

/** A library may throw anything. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const OF_FILES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is a file',
  EISDIR: 'it is a folder',
  EACCES: 'you may not read it',
  ELOOP: 'its links lead in a circle',
};

/** The reason why a file could not be read. */
export const fileErrorText = (error: unknown): string =>
  OF_FILES[(error as NodeJS.ErrnoException).code ?? ''] ?? errorText(error);

/** The kind of a value, for a sentence about it: "a list", "null", "a string". */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  return `a ${typeof value}`;
}

type Issue = z.core.$ZodIssue;

/** zod's own sentences name types and signs; a schema with a sentence of its own keeps it. */
const OF_ZOD = /^(?:Invalid (?:input|option)|Too (?:small|big))/;

const KINDS: Readonly<Record<string, string>> = {
  number: 'a number',
  int: 'a whole number',
  string: 'text',
  boolean: 'true or false',
  object: 'a section with keys',
  record: 'a section with keys',
  array: 'a list',
};

/** "must be 0 or more". Of a value with several forms, what is wrong with the form that it is most like. */
export function issueText(issue: Issue): string {
  if (!OF_ZOD.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case 'too_small':
      return tooSmall(issue.origin, Number(issue.minimum), issue.inclusive !== false);
    case 'too_big':
      return ['string', 'array'].includes(issue.origin)
        ? `must not be longer than ${issue.maximum}`
        : `must be ${issue.inclusive === false ? `less than ${issue.maximum}` : `${issue.maximum} or less`}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'invalid_union':
      return likeliest(issue.errors);
    default:
      return issue.message;
  }
}

function tooSmall(origin: string, minimum: number, inclusive: boolean): string {
  if (origin === 'string' || origin === 'array')
    return minimum === 1 ? 'must not be empty' : `must not be shorter than ${minimum}`;
  return `must be ${inclusive ? `${minimum} or more` : `more than ${minimum}`}`;
}

function likeliest(forms: readonly (readonly Issue[])[]): string {
  // A form that takes the value as such, and has something to say about a part of it.
  const near = forms
    .filter(([first]) => first && first.path.length > 0)
    .sort((a, b) => a.length - b.length)[0];
  if (near) return near.map((issue) => `${issue.path.join('.')} ${issueText(issue)}`).join(', ');
  const said = [...new Set(forms.flatMap((form) => form.slice(0, 1).map(issueText)))];
  return said.join(', or ') || 'has none of the forms that it may have';
}
