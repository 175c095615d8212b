// Which project a test file belongs to follows from what it reaches: nobody keeps a list. What starts no program and needs nothing of the machine is a unit test.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

export const PROJECTS = ['unit', 'process', 'alone', 'engine', 'browser'] as const;
export type Project = (typeof PROJECTS)[number];

/** Suites that a command of their own runs. */
const ELSEWHERE = /^tests\/(long|kubernetes|podman|fuzz)\//;
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g;

/** Changes what the files after it in its process see too. */
const ALONE = /\bvi\.mock\(/;
/** Changes what a thread may not, or has npm started, to which it gives a registry. */
const OWN_PROCESS = /\bprocess\.(?:chdir|umask)\(|\bnpm_config_[r]egistry\b/;

interface Source {
  readonly text: string;
  /** From the root, of files of ours. */
  readonly imports: readonly string[];
  /** As they are imported. */
  readonly packages: readonly string[];
}

const sources = new Map<string, Source>();

/** A file of ours by its path from the root. */
function sourceOf(file: string): Source {
  const known = sources.get(file);
  if (known) return known;
  const path = join(ROOT, file);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const names = [...text.matchAll(IMPORT)].map(([, name]) => name!);
  const made = {
    text,
    imports: names
      .filter((name) => name.startsWith('.'))
      .map((name) => relative(ROOT, resolve(dirname(path), name))),
    packages: names.filter((name) => !name.startsWith('.')),
  };
  sources.set(file, made);
  return made;
}

/** What a file of ours says; nothing where there is none. */
export const textOf = (file: string): string => sourceOf(file).text;

/** The file and all that it loads, now or later; `within` keeps the walk to some rooms. */
export function reachedFrom(file: string, within: (file: string) => boolean = () => true): Set<string> {
  const reached = new Set<string>();
  const open = [file];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    if (next === file || within(next)) open.push(...sourceOf(next).imports);
  }
  return reached;
}

/** Test files of `npm test`, from the root. */
export const testFiles = (): string[] =>
  readdirSync(join(ROOT, 'tests'), { recursive: true, encoding: 'utf8' })
    .map((file) => join('tests', file))
    .filter((file) => file.endsWith('.test.ts') && !ELSEWHERE.test(file))
    .sort();

export const ofTests = (file: string): boolean => /^(?:tests|scripts)\//.test(file);

export function projectOf(file: string): Project {
  // Of the sources only the doors that the test itself opens count: half of them could start a program somewhere.
  const reached = reachedFrom(file, ofTests);
  const packages = new Set([...reached].flatMap((one) => sourceOf(one).packages));
  if (packages.has('playwright-core')) return 'browser';
  if (reached.has('tests/support/docker.ts')) return 'engine';
  if ([...reached].some((one) => ALONE.test(textOf(one)))) return 'alone';
  const own = packages.has('node:child_process') || [...reached].some((one) => OWN_PROCESS.test(textOf(one)));
  return own ? 'process' : 'unit';
}
