/**
 * `swebatch ls night --watch`: the table of flags of a verb says what each word behind it means, and which mistake it is. Node splits the words
 * into tokens; nothing is read twice.
 */
import { parseArgs } from 'node:util';
import { ownEntry } from '../../base/isRecord.ts';
import { closest } from '../../base/text/closest.ts';
import { visibleName } from '../../base/text/inert.ts';
import { type Flag, type Flags, type GivenValues, isSwitch, kebab, type Verb } from './verb.ts';

/** A flag under one of the words that name it. */
interface NamedFlag {
  readonly name: string;
  readonly flag: Flag;
  /** The word is `--no-…`. */
  readonly off?: true;
}

/** Flags were once called otherwise. */
const RENAMED: Readonly<Record<string, string>> = { '--dialect': '--harness' };

/** The values, and a sentence for each mistake. Values are of use beside mistakes too, because help may be among them. */
export function parseWords(
  words: readonly string[],
  { usage, flags }: Pick<Verb, 'usage' | 'flags'>,
): { readonly given: GivenValues; readonly mistakes: readonly string[] } {
  const named = flagsByWord(flags);
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries([...named].map(([word, { flag }]) => [word, optionOf(word, flag)])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given: Record<string, string | boolean | readonly string[] | undefined> = {};
  const placed: string[] = [];
  const unknown: string[] = [];
  const wrong: string[] = [];
  const put = ({ name, flag }: NamedFlag, value: string) => {
    const before = given[name];
    const several = flag.list || flag.repeats || (before !== undefined && before !== '');
    given[name] = several ? [before ?? [], value].flat().map(String) : value;
  };
  /** The option that the next word may belong to. */
  let open: NamedFlag | undefined;
  for (const token of tokens) {
    if (token.kind === 'option-terminator') {
      open = undefined;
      continue;
    }
    if (token.kind === 'positional') {
      if (open && isSwitch(open.flag) && isTruth(token.value)) given[open.name] = token.value === 'true';
      else if (open?.flag.list || (open?.flag.valueOptional && given[open.name] === ''))
        put(open, token.value);
      else placed.push(token.value);
      if (!open?.flag.list) open = undefined;
      continue;
    }
    const { rawName } = token;
    open = named.get(token.name);
    if (!open) {
      unknown.push(unknownOption(rawName, [...named.keys()]));
      continue;
    }
    const { name, flag, off } = open;
    // `-w=4` is `-w 4`.
    const value =
      token.inlineValue && !rawName.startsWith('--') ? token.value.replace(/^=/, '') : token.value;
    const isOption = value !== undefined && !token.inlineValue && /^-[^\d.]/.test(value);
    if (isSwitch(flag)) {
      if (value === undefined) given[name] = !off;
      else if (isTruth(value)) given[name] = (value === 'true') !== (off === true);
      else if (flag.choices) given[name] = value;
      else
        wrong.push(
          `${longName(name)} takes no value (it is "${value}"); say ${longName(name)} or --no-${kebab(name)}`,
        );
    } else if (value === undefined && flag.valueOptional) given[name] = '';
    else if (value === undefined || isOption)
      wrong.push(`${rawName} needs a value${flag.choices ? `: one of ${flag.choices.join(', ')}` : ''}`);
    else put(open, value);
  }
  for (const [name, { place, list }] of Object.entries(flags))
    if (place && placed.length > 0) given[name] = list ? placed.splice(0) : placed.shift();
  if (unknown.length > 0) wrong.push(...unknown);
  else {
    wrong.push(...missingPlaces(flags, given, usage));
    wrong.push(...placed.map((word) => `unexpected argument "${word}"`));
    wrong.push(...wrongChoices(flags, given, words, usage));
  }
  return { given, mistakes: wrong };
}

const isTruth = (value: string): boolean => value === 'true' || value === 'false';

const longName = (name: string): string => `--${kebab(name)}`;

/** Flags by their words without dashes: `data-dir` and `dataDir`, `w`, and `no-evaluate` for each switch, unless a flag is called so. */
function flagsByWord(flags: Flags): Map<string, NamedFlag> {
  const named = Object.entries(flags).flatMap(([name, flag]) => (flag.place ? [] : [{ name, flag }]));
  const byWord = new Map<string, NamedFlag>();
  for (const one of named)
    for (const word of [kebab(one.name), one.name, one.flag.alias ?? []].flat()) byWord.set(word, one);
  for (const { name, flag } of named) {
    const off = `no-${kebab(name)}`;
    if (isSwitch(flag) && !byWord.has(off)) byWord.set(off, { name, flag, off: true });
  }
  return byWord;
}

const optionOf = (word: string, flag: Flag) => ({
  type: isSwitch(flag) || flag.valueOptional ? ('boolean' as const) : ('string' as const),
  ...(word.length === 1 && { short: word }),
});

function unknownOption(typed: string, words: readonly string[]): string {
  const renamed = ownEntry(RENAMED, typed);
  const known = words.filter((word) => word.length > 1);
  const close =
    renamed && known.includes(renamed.slice(2)) ? renamed.slice(2) : closest(typed.replace(/^-+/, ''), known);
  return `there is no option ${visibleName(typed)}${close ? `; did you mean --${kebab(close)}?` : ''}`;
}

function missingPlaces(flags: Flags, given: GivenValues, usage: string): string[] {
  const missing = Object.entries(flags).flatMap(([name, { place }]) =>
    place === 'required' && given[name] === undefined ? [`<${name}>`] : [],
  );
  if (missing.length === 0) return [];
  return [`${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing: swebatch ${usage}`];
}

const wrongChoices = (flags: Flags, given: GivenValues, words: readonly string[], usage: string): string[] =>
  Object.entries(flags).flatMap(([name, { choices, place }]) =>
    [given[name] ?? []].flat().flatMap((value) => {
      if (!choices || typeof value !== 'string' || choices.includes(value)) return [];
      const close = closest(value, choices);
      const swapped = place && words.some((word) => choices.includes(word));
      const help = close ? `; did you mean ${close}?` : swapped ? `; the order is: swebatch ${usage}` : '';
      return [`${place ? name : longName(name)} "${value}" must be one of ${choices.join(', ')}${help}`];
    }),
  );
