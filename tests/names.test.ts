// An exported name has one meaning. Two programs are checked, each for itself: the one that runs in Node, and the page in the browser.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));

/** Folders whose siblings do the same thing each in its way: one name there has one meaning. */
const LEAVES = /^(environment(?=\/(?:docker|kubernetes|local)\/)|suites|model\/dialects|formats)\/[^/]+\//;

/** Names that are declared twice with one meaning, and why. */
const SAME: Readonly<Record<string, string>> = {
  harbor: 'Harbor, as a suite and as a format: one line in each of two tables',
  pro: 'SWE-bench Pro, likewise',
};

const DECLARED =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;

/** Names that more than one place declares: the file, or the leaves of one table together. */
function declaredTwice(sources: readonly (readonly [file: string, text: string])[]): string[] {
  const places = new Map<string, Set<string>>();
  for (const [file, text] of sources)
    for (const [, name] of text.matchAll(DECLARED)) {
      const place = LEAVES.exec(file)?.[1] ?? file;
      places.set(name!, (places.get(name!) ?? new Set()).add(place));
    }
  return [...places].filter(([, of]) => of.size > 1).map(([name]) => name);
}

const sources = files.map((file) => [file, readFileSync(join(SRC, file), 'utf8')] as const);
const ofPage = ([file]: readonly [string, string]) => file.startsWith('viewer/page/');

test('no exported name is declared twice', () => {
  const twice = declaredTwice(sources.filter((source) => !ofPage(source)));
  expect(twice.filter((name) => !(name in SAME)).sort()).toEqual([]);
  expect(declaredTwice(sources.filter(ofPage))).toEqual([]);
});

test('a name that has become unique is no exception any more', () => {
  const twice = new Set(declaredTwice(sources.filter((source) => !ofPage(source))));
  expect(Object.keys(SAME).filter((name) => !twice.has(name))).toEqual([]);
});

test('a planted second meaning is found, a twin in a sibling leaf is none', () => {
  const planted = [
    ['report/gate.ts', 'export const gate = 1;'],
    ['run/pause.ts', 'export function gate() {}'],
    ['environment/docker/files.ts', 'export const getFile = 1;'],
    ['environment/kubernetes/files.ts', 'export const getFile = 1;'],
  ] as const;
  expect(declaredTwice(planted)).toEqual(['gate']);
});
