/** Translates agent.action_regex from Python's re (with DOTALL) to JavaScript; refuses what has no translation or no linear-time match. */
import { LONGEST_PATTERN, linearProblem } from '../base/regex/linearRegex.ts';

export type Translated = { readonly regex: string } | { readonly problem: string };

const PYTHON_ONLY: readonly (readonly [RegExp, string])[] = [
  [/\(\?P=/, 'a named back reference (?P=name)'],
  [/\(\?\(/, 'a conditional group (?(...)...)'],
  [/\(\?s*[aiLmux][aiLmsux]*[-:)]/, 'an inline flag other than (?s)'],
  [/\(\?>/, 'an atomic group'],
];

export function translateActionRegex(pattern: string): Translated {
  if (pattern.length > LONGEST_PATTERN) return { problem: `it has more than ${LONGEST_PATTERN} characters` };
  // Always on here, as Python's re.DOTALL is there.
  const text = pattern.replace(/^\(\?s\)/, '');
  for (const [found, what] of PYTHON_ONLY)
    if (found.test(text))
      return { problem: `${what} cannot be used; write it as a JavaScript regular expression` };
  const regex = text
    .replace(/\(\?P</g, '(?<')
    .replace(/(^|[^\\])((?:\\\\)*)\\Z/g, '$1$2(?![\\s\\S])')
    .replace(/(^|[^\\])((?:\\\\)*)\\A/g, '$1$2(?<![\\s\\S])');
  let groups: number;
  try {
    groups = (new RegExp(`${regex}|`, 's').exec('')?.length ?? 1) - 1;
  } catch (error) {
    return { problem: `it is not a regular expression: ${(error as Error).message}` };
  }
  if (groups > 1)
    return { problem: `it has ${groups} capture groups; exactly one, around the command, is needed` };
  const problem = linearProblem(regex, 's');
  return problem === null ? { regex } : { problem: `it ${problem}` };
}
