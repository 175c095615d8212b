// Real texts to break: of this repository's tests, and of the shared data where they are there.
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';

const ROOT = join(import.meta.dirname, '..', '..');
const SHARED = join(ROOT, '..', 'shared');

const LARGEST = 2_000_000;
/** A case takes this much of a text: enough for its structure, little enough for many cases. */
const TAKEN = 20_000;

function textsOf(patterns: readonly string[], most: number): string[] {
  const paths = patterns.flatMap((pattern) => globSync(pattern).toSorted());
  const step = Math.max(1, Math.floor(paths.length / most));
  return paths
    .filter((path, i) => i % step === 0 && statSync(path).isFile() && statSync(path).size <= LARGEST)
    .map((path) => readFileSync(path, 'utf8'));
}

/** Texts by what they are. What lies in the shared folder is not part of the repository. */
export const CORPORA: Readonly<Record<string, () => readonly string[]>> = {
  grading: () =>
    textsOf([join(SHARED, 'data/grading-logs/**/*.txt'), join(SHARED, 'data/grading-logs/**/*.diff')], 40),
  files: () =>
    textsOf(
      [
        join(
          SHARED,
          'data/{predictions,trajectories,datasets,configs,tasks}/**/*.{json,jsonl,yaml,yml,traj}',
        ),
        join(SHARED, 'data/grading-logs/**/report.json'),
        join(ROOT, 'configs/*.yaml'),
        join(ROOT, 'tests/**/fixtures/*.json'),
      ],
      40,
    ),
  model: () => textsOf([join(SHARED, 'golden/{providers,requests}/*.json')], 20),
  agent: () =>
    textsOf([join(ROOT, 'tests/template/fixtures/*.json'), join(ROOT, 'src/environment/**/*.sh')], 20),
  base: () => textsOf([join(ROOT, 'tests/**/fixtures/*.json'), join(ROOT, 'docs/*.md')], 20),
  shown: () => textsOf([join(ROOT, 'docs/*.md'), join(SHARED, 'data/grading-logs/**/*.diff')], 20),
};

export const hasShared = existsSync(join(SHARED, 'data'));

/** Random text, words of a reader, pieces of real texts, and all of them with parts cut out, doubled and changed. */
export function textLike(corpus: readonly string[], words: readonly string[]): fc.Arbitrary<string> {
  const word = fc.constantFrom(...(words.length > 0 ? words : ['a']));
  const built = fc.array(
    fc.oneof(
      { weight: 4, arbitrary: word },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
    ),
    { maxLength: 40 },
  );
  const repeated = fc.tuple(word, fc.nat({ max: 300 }), word).map(([a, n, b]) => a.repeat(n) + b);
  const plain = fc.oneof(
    built.map((parts) => parts.join('')),
    repeated,
    fc.string({ unit: 'binary' }),
  );
  if (corpus.length === 0) return plain;
  const real = fc
    .tuple(fc.constantFrom(...corpus), fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean())
    .map(([text, at, whole]) => {
      if (text.length <= TAKEN || whole) return text.slice(0, TAKEN);
      const from = Math.floor(at * (text.length - TAKEN));
      return text.slice(from, from + TAKEN);
    });
  const edit = fc.tuple(fc.nat(), fc.nat({ max: 50 }), word, fc.constantFrom('cut', 'put', 'twice', 'end'));
  const broken = fc.tuple(real, fc.array(edit, { minLength: 1, maxLength: 6 })).map(([text, edits]) =>
    edits.reduce((now, [place, length, piece, how]) => {
      const at = place % (now.length + 1);
      if (how === 'end') return now.slice(0, at);
      const middle = how === 'put' ? piece : how === 'twice' ? now.slice(at, at + length).repeat(2) : '';
      return now.slice(0, at) + middle + now.slice(how === 'put' ? at : at + length);
    }, text),
  );
  return fc.oneof(
    { weight: 2, arbitrary: plain },
    { weight: 2, arbitrary: broken },
    { weight: 1, arbitrary: real },
  );
}
