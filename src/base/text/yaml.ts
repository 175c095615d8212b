/** YAML of people and of strangers: with merge keys, no key twice, and within bounds of length, depth and repetition. */
import { type Document, LineCounter, parseDocument } from 'yaml';
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
/** A hundred times as deep as a configuration goes; deeper by far, reading takes seconds. */
const DEEPEST = 500;

/** How many brackets are open at most; those in quotes and templates count too, where they close again. */
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

function mistakes({ errors }: Document.Parsed, lines: LineCounter): string[] {
  const shown = errors.slice(0, MOST_SHOWN).map(({ message, pos }) => {
    const { line, col } = lines.linePos(pos[0]);
    return `${message} at line ${line}, column ${col}`;
  });
  const more = errors.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

/** A key given twice is an error here. Throws a YamlError. */
export function parseYaml(text: string): unknown {
  if (text.length > LONGEST) throw new YamlError([`longer than ${LONGEST.toLocaleString('en')} characters`]);
  if (deepestOf(text) > DEEPEST)
    throw new YamlError([`brackets are open more than ${DEEPEST} deep; close them`]);
  const lines = new LineCounter();
  const document = quickly(() =>
    parseDocument(text, { merge: true, prettyErrors: false, lineCounter: lines }),
  );
  if (document.errors.length > 0) throw new YamlError(mistakes(document, lines));
  try {
    // Aliases and merge keys are followed only here: one that leads nowhere is the person's mistake too.
    return document.toJS();
  } catch (error) {
    throw new YamlError([errorText(error)]);
  }
}
