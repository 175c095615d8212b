/** YAML of people and of strangers: with merge keys, no key twice, and within bounds of length, depth and repetition. */
import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  type ScalarTag,
  stringify,
  visit,
} from 'yaml';
import { errorText } from './errorText.ts';

/** Everything that is wrong with a text, at once. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

// The library takes the square of the time for brackets inside brackets.

/** A template may have as many characters; the shipped configurations have 20,000. */
const LONGEST = 1_000_000;
/** A hundred times as deep as a configuration goes; deeper by far, reading takes seconds. Observed with LONGEST: tests/long/worstText.test.ts. */
const DEEPEST = 500;

/** The most brackets open at a time; those in quotes and templates count too, where they close again. */
function deepestOf(text: string): number {
  let open = 0;
  let deepest = 0;
  for (let i = 0; i < text.length && deepest <= DEEPEST; i++) {
    const char = text[i];
    if (char === '[' || char === '{') deepest = Math.max(deepest, ++open);
    else if ((char === ']' || char === '}') && open > 0) open--;
  }
  return deepest;
}

/** Thousands of mistakes in one text are thousands of errors; their stacks, which nobody reads, would take most of the time. */
function quickly<T>(work: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const MOST_SHOWN = 20;

interface Mistake {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly [number, number];
}

/** Our words in place of the library's, where those speak to a program. */
const IN_WORDS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a second document begins here (---), and one is read: give each a file of its own',
};
const inWords = ({ code, message }: Mistake): string =>
  code === 'TAG_RESOLVE_FAILED'
    ? `nobody here reads the tag ${message.replace('Unresolved tag: ', '').replace('tag:yaml.org,2002:', '!!')}`
    : (IN_WORDS[code] ?? message);

function mistakes(found: readonly Mistake[], lines: LineCounter): string[] {
  const shown = found.slice(0, MOST_SHOWN).map((mistake) => {
    const { line, col } = lines.linePos(mistake.pos[0]);
    return `${inWords(mistake)} at line ${line}, column ${col}`;
  });
  const more = found.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

/**
 * A tag that nobody reads (`!ENV ${X}`, `!!python/str`) would leave its value as a text, and `? [a]` would be the key "[ a ]". PyYAML refuses both.
 */
function unread(document: Document.Parsed): Mistake[] {
  const found: Mistake[] = document.warnings.filter(({ code }) => code === 'TAG_RESOLVE_FAILED');
  visit(document, {
    Pair(_, { key }) {
      if (isCollection(key))
        found.push({ code: 'BAD_KEY', message: 'a key must be a text', pos: [key.range?.[0] ?? 0, 0] });
    },
  });
  return found;
}

/**
 * Anchors whose own value holds an alias of them: `x-a: &a {b: *a}` has no end, and filled the stack. Each alias is read by the anchor that stands
 * last before it.
 */
function endless(document: Document.Parsed): Mistake[] {
  const found: Mistake[] = [];
  const anchored = new Map<string, Node>();
  visit(document, {
    Value(_, node) {
      if (node.anchor !== undefined) anchored.set(node.anchor, node);
    },
    Alias(_, { source, range }, path) {
      const of = anchored.get(source);
      if (of && path.includes(of))
        found.push({
          code: 'BAD_ALIAS',
          message: `*${source} stands inside of what it names`,
          pos: [range?.[0] ?? 0, 0],
        });
    },
  });
  return found;
}

const wholeOf = (text: string): number => {
  const digits = text.replaceAll('_', '').replace(/^[-+]/, '');
  const sign = text.startsWith('-') ? -1 : 1;
  if (digits.includes(':')) return sign * digits.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return sign * (/^0\d/.test(digits) ? Number.parseInt(digits, 8) : Number(digits));
};

/** Plain words that PyYAML (YAML 1.1) reads as a value and YAML 1.2 as a text: `yes`, `1_000`, `010`, `1:30`. Source: `yaml/resolver.py` 6.0. */
const PYTHON_TAGS: readonly ScalarTag[] = [
  {
    tag: 'tag:yaml.org,2002:bool',
    default: true,
    test: /^(?:yes|no|on|off|Yes|No|On|Off|YES|NO|ON|OFF)$/,
    resolve: (word) => /^(?:yes|on)$/i.test(word),
  },
  {
    tag: 'tag:yaml.org,2002:int',
    default: true,
    test: /^[-+]?(?:0b[01_]+|0x[\da-fA-F_]+|0[0-7_]+|[1-9][\d_]*(?::[0-5]?\d)*)$/,
    resolve: wholeOf,
  },
  {
    tag: 'tag:yaml.org,2002:float',
    default: true,
    test: /^[-+]?(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?$/,
    resolve: (digits) => Number(digits.replaceAll('_', '')),
  },
];

/** Keys are texts, as they are written: `NO: 1` names a variable. So are switches of variables: `env: {PIP_PROGRESS_BAR: off}`. */
function keepTexts(document: Document.Parsed): void {
  const asWritten = (node: unknown, types: RegExp): void => {
    if (isScalar(node) && node.source !== undefined && types.test(typeof node.value))
      node.value = node.source;
  };
  visit(document, {
    Pair(_, { key, value }) {
      asWritten(key, /^(?:boolean|number)$/);
      if (isScalar(key) && key.value === 'env' && isMap(value))
        for (const variable of value.items) asWritten(variable.value, /^boolean$/);
    },
  });
}

/** YAML that YAML 1.2 and PyYAML read alike: `off` as a text has quotes. */
export const writeYaml = (value: unknown): string => stringify(value, { lineWidth: 0, compat: 'yaml-1.1' });

/** YAML as a program in Python reads it. A key given twice is an error here. Throws a YamlError. */
export const parsePythonYaml = (text: string): unknown => parseYaml(text, PYTHON_TAGS);

/** YAML 1.2. A key given twice is an error here. Throws a YamlError. */
export function parseYaml(text: string, tags: readonly ScalarTag[] = []): unknown {
  if (text.length > LONGEST) throw new YamlError([`longer than ${LONGEST.toLocaleString('en')} characters`]);
  if (deepestOf(text) > DEEPEST)
    throw new YamlError([`brackets are open more than ${DEEPEST} deep; close them`]);
  const lines = new LineCounter();
  const document = quickly(() =>
    parseDocument(text, {
      merge: true,
      prettyErrors: false,
      lineCounter: lines,
      // The library would print its warnings about keys.
      logLevel: 'error',
      customTags: (known) => [...tags, ...known],
    }),
  );
  const found: Mistake[] = [...document.errors];
  if (tags.length > 0) found.push(...unread(document));
  if (found.length === 0) found.push(...endless(document));
  if (found.length > 0) throw new YamlError(mistakes(found, lines));
  if (tags.length > 0) keepTexts(document);
  try {
    // Aliases and merge keys are followed only here: one that leads nowhere is the person's mistake too.
    return document.toJS();
  } catch (error) {
    throw new YamlError([errorText(error)]);
  }
}
