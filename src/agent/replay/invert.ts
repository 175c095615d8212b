/**
 * Turns rendered text back into what was rendered: the template is rendered with marks in place of values, and the text between
 * the marks is what the recording must have around the values. Nothing knows a template by name.
 */
import { render, type Vars } from '../../template/render.ts';

const MARK = '\uE000\uE001\uE000';
/** A return code that no program gives. */
const CODE = 918_273_645;
const HEAD = '\uE002'.repeat(5000);
const TAIL = '\uE003'.repeat(5000);
const ELIDED = 31_337;

interface RecordedOutput {
  readonly output: string;
  readonly returncode: number;
  /** Characters that the recording left out of the middle. */
  readonly elided: number;
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** One value that a template shows, from a rendered text; null when the text cannot have come from it. */
export function invertValue(template: string, text: string, varsWith: (mark: string) => Vars): string | null {
  const parts = marked(template, varsWith(MARK))?.split(MARK);
  if (!parts || parts.length < 2) return null;
  // Each mark stands for the same value, so its length follows from that of the text.
  const length = (text.length - parts.join('').length) / (parts.length - 1);
  if (length < 0 || !Number.isInteger(length)) return null;
  const value = text.slice(parts[0]!.length, parts[0]!.length + length);
  return parts.join(value) === text ? value : null;
}

export type InvertOutput = (text: string, action: string) => RecordedOutput | null;

/** What a template of outputs is rendered with; `returncode` where it shows one. */
type VarsOf = (output: string, action: string, returncode: number) => Vars;

/** Output and return code behind an observation, in the short or the elided form of its template. */
export const observationInverter = (template: string, vars: Vars): InvertOutput =>
  outputInverter(template, (output, action, returncode) => ({
    ...vars,
    output: { exception_info: '', total_bytes: 0, omitted_bytes: 0, output, returncode, action },
  }));

/** The same for the message about a command that timed out. */
export const timeoutInverter = (template: string, vars: Vars): InvertOutput =>
  outputInverter(template, (output, action) => ({ ...vars, action: { action, command: action }, output }));

/** The patterns are made once. */
function outputInverter(template: string, varsOf: VarsOf): InvertOutput {
  const showsAction = /\baction\b/.test(template);
  const known = new Map<string, Patterns>();
  return (text, action) => {
    const key = showsAction ? action : '';
    const patterns = known.get(key) ?? patternsOf(template, (output) => varsOf(output, key, CODE));
    known.set(key, patterns);
    const short = patterns.short?.exec(text)?.groups;
    if (short) {
      const found = { output: short.output ?? '', returncode: Number(short.code ?? 0) };
      // Long outputs have their own branch; a text that only looks like the short one is not from there.
      if (marked(template, varsOf(found.output, action, found.returncode)) === text)
        return { ...found, elided: 0 };
    }
    // To compile a pattern of ten thousand characters takes a tenth of a second, and a shorter text cannot fit it.
    const long = text.length < HEAD.length + TAIL.length ? undefined : patterns.long?.exec(text)?.groups;
    if (!long) return null;
    const { head = '', tail = '', elided = '0', code = '0' } = long;
    // What was left out is gone: the same number of characters stands in for it.
    const output = head + 'x'.repeat(Number(elided)) + tail;
    return { output, returncode: Number(code), elided: Number(elided) };
  };
}

interface Patterns {
  readonly short: RegExp | null;
  readonly long: RegExp | null;
}

function patternsOf(template: string, varsWith: (output: string) => Vars): Patterns {
  const short = marked(template, varsWith(MARK));
  const long = marked(template, varsWith(HEAD + 'm'.repeat(ELIDED) + TAIL));
  return {
    short: short === null ? null : patternOf(short, [[MARK, '([\\s\\S]*)', 'output']]),
    // With the u flag a dot and a class are code points, as Python's slices count them.
    long:
      // A template that shows the output in another spelling (the built-in one of version 1 prints a Python dict) has no such form.
      long === null || !long.includes(HEAD)
        ? null
        : patternOf(long, [
            [HEAD, '([\\s\\S]{5000})', 'head'],
            [TAIL, '([\\s\\S]{5000})', 'tail'],
            [String(ELIDED), '(\\d+)', 'elided'],
          ]),
  };
}

/** A rendering with marks as a pattern; each mark becomes a named group, the return code one too. */
function patternOf(rendered: string, marks: readonly (readonly [string, string, string])[]): RegExp {
  let pattern = literal(rendered);
  for (const [mark, group, name] of [...marks, [String(CODE), '(-?\\d+)', 'code'] as const])
    pattern = pattern.replace(mark, group.replace('(', `(?<${name}>`));
  return new RegExp(`^${pattern}$`, 'u');
}

function marked(template: string, vars: Vars): string | null {
  try {
    return render(template, vars);
  } catch {
    return null;
  }
}
