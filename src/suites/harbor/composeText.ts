/** Texts of a Compose file: variables by the rules of its specification ("Interpolation"), and commands that are written as one line. */
import { isRecord } from '../../base/isRecord.ts';
import { errorText } from '../../base/text/errorText.ts';

/** The fault of a text, as the end of a sentence about its place. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

const NAME = /[A-Za-z_]\w*/y;
const MOST_NESTED = 10;
/** A text with all its variables. */
const LONGEST_TEXT = 1_000_000;

/** Throws Refused for what is no variable, and for one that nobody sets. */
export function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  let at = 0;
  const nameAt = (): string | undefined => {
    NAME.lastIndex = at;
    const found = NAME.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const has = (name: string): boolean => Object.hasOwn(variables, name);
  const wanted = (name: string): never => {
    throw new Refused(`wants $${name} of this machine`);
  };
  /** Up to the brace that closes it, where there is one. */
  const read = (nested: number): string => {
    if (nested > MOST_NESTED) throw new Refused(`has variables more than ${MOST_NESTED} deep`);
    const parts: string[] = [];
    while (at < text.length) {
      const char = text[at]!;
      if (nested > 0 && char === '}') break;
      at += 1;
      if (char !== '$') {
        parts.push(char);
        continue;
      }
      if (text[at] === '$') {
        parts.push('$');
        at += 1;
        continue;
      }
      const braced = text[at] === '{';
      if (braced) at += 1;
      const name = nameAt();
      if (name === undefined)
        throw new Refused(`has "$${text.slice(at - (braced ? 1 : 0), at + 10)}", which is no variable`);
      parts.push(braced ? bracedValue(name, nested) : has(name) ? variables[name]! : wanted(name));
    }
    return parts.join('');
  };
  const bracedValue = (name: string, nested: number): string => {
    const empty = text[at] === ':';
    if (empty) at += 1;
    const operator = text[at] ?? '';
    const isSet = has(name) && (!empty || variables[name] !== '');
    if ('-?+'.includes(operator) && operator !== '') {
      at += 1;
      // Of what does not count nothing is asked.
      const counts = operator === '+' ? isSet : !isSet;
      const other = counts ? read(nested + 1) : skip(nested + 1);
      close(name);
      if (operator === '+') return isSet ? other : '';
      if (isSet) return variables[name]!;
      return operator === '-' ? other : wanted(name);
    }
    if (empty) throw new Refused(`has "\${${name}:${operator}", which is no variable`);
    close(name);
    return isSet ? variables[name]! : wanted(name);
  };
  const skip = (nested: number): string => {
    let open = 1;
    if (nested > MOST_NESTED) throw new Refused(`has variables more than ${MOST_NESTED} deep`);
    for (; at < text.length; at += 1) {
      if (text[at] === '$' && text[at + 1] === '{') open += 1;
      if (text[at] === '}' && --open === 0) return '';
    }
    return '';
  };
  const close = (name: string): void => {
    if (text[at] !== '}') throw new Refused(`has "\${${name}", which is not closed`);
    at += 1;
  };
  const value = read(0);
  if (value.length > LONGEST_TEXT) throw new Refused('is longer than any text of such a file');
  return value;
}

/** A file of a person has some hundred values; one that repeats itself by aliases has millions (observed: tests/suites/harbor/compose.test.ts). */
const MOST_VALUES = 20_000;
const DEEPEST = 30;

/** Every text with its variables. Reasons name the place. Keys keep theirs, as in Compose. */
export function interpolated(
  tree: unknown,
  variables: Readonly<Record<string, string>>,
  reasons: string[],
): unknown {
  let left = MOST_VALUES;
  const walk = (value: unknown, path: readonly string[], inList = false): unknown => {
    left -= 1;
    if (left < 0 || path.length > DEEPEST) throw new Refused('it repeats itself without end');
    if (typeof value === 'string') {
      const [top, , key, ...below] = path;
      const isVariable = top === 'services' && key === 'environment' && below.length === 1;
      const asked = isVariable ? askedIn(value, inList, variables) : undefined;
      if (asked !== undefined) return asked;
      try {
        return interpolate(value, variables).replaceAll(ASKED, '');
      } catch (error) {
        reasons.push(`${placeOf(path)} ${errorText(error)}`);
        return '';
      }
    }
    if (Array.isArray(value)) return value.map((one, i) => walk(one, [...path, String(i)], true));
    if (!isRecord(value)) return value;
    const entries = Object.entries(value).flatMap(([key, one]) =>
      key.startsWith('x-') && path.length < 3 ? [] : [[key, walk(one, [...path, key])] as const],
    );
    return Object.assign(Object.create(null) as object, Object.fromEntries(entries));
  };
  return walk(tree, []);
}

/**
 * A value of a service's `environment` that is nothing but a variable of this machine, which the task's user may allow: its name behind a
 * sign that no text of a file begins with, and the default where it has one.
 */
const ASKED = '\0';
const WHOLE = /^([A-Za-z_]\w*=)?\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^${}]*))?\})$/;

function askedIn(text: string, inList: boolean, variables: Readonly<Record<string, string>>) {
  const [, key = '', bare, braced, other] = WHOLE.exec(text) ?? [];
  const name = bare ?? braced;
  if (name === undefined || (key !== '') !== inList || Object.hasOwn(variables, name)) return undefined;
  return `${key}${askFor(name, other)}`;
}

export const askFor = (name: string, other?: string): string =>
  [ASKED, name, ...(other === undefined ? [] : [ASKED, other])].join('');

/** The variables of a service: those that are known, with defaults, and those that are asked of this machine. */
export function withAsked(environment: Readonly<Record<string, string>>) {
  const env: Record<string, string> = {};
  const variables: Record<string, string> = {};
  for (const [key, value] of Object.entries(environment)) {
    if (!value.startsWith(ASKED)) {
      env[key] = value;
      continue;
    }
    const [name = '', other] = value.slice(ASKED.length).split(ASKED);
    variables[key] = name;
    if (other !== undefined) env[key] = other;
  }
  return { env, ...(Object.keys(variables).length > 0 && { variables }) };
}

const placeOf = ([top, name, ...rest]: readonly string[]): string =>
  top === 'services' && name !== undefined
    ? `service ${name}${rest.length > 0 ? `: ${rest.join('.')}` : ''}`
    : [top, name, ...rest].filter((part) => part !== undefined).join('.');

/** Words as a shell takes them apart, without anything else of a shell. Throws Refused for a quote that stays open. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i]!;
    if (quote !== '') {
      if (char === quote) quote = '';
      else if (char === '\\' && quote === '"' && '"\\$`'.includes(text[i + 1] ?? ' ')) word += text[++i]!;
      else word += char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (char === '\\') word = (word ?? '') + (text[++i] ?? '');
    else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + char;
  }
  if (quote !== '') throw new Refused('has a quote that is not closed');
  return word === undefined ? words : [...words, word];
}
