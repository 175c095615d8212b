// The image of the Dockerfile, built from what npm would publish and the packages that are installed here.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BASE_IMAGE } from '../../../src/demo/baseImage.ts';
import { REPO } from '../cli.ts';

export const docker = (...args: string[]) => spawnSync('docker', args, { encoding: 'utf8' });

function built(tag: string, folder: string, ...more: string[]): void {
  const made = docker('build', '-q', '-t', tag, ...more, folder);
  if (made.status !== 0) throw new Error(made.stderr);
}

interface Locked {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly dev?: boolean;
        readonly devOptional?: boolean;
        readonly dependencies?: Readonly<Record<string, string>>;
      }
    >
  >;
}

export interface ProgramImage {
  /** A folder of its own. */
  readonly work: string;
  readonly name: string;
  /** The image below it: the base of the demo with this Node. */
  readonly node: string;
  /** Packages beside those of the program, with all that they need. */
  readonly beside?: readonly string[];
  /** Packages that are left out, because nothing that is tried needs them. */
  readonly without?: readonly string[];
}

/** No registry can be reached from within a build here, so packages are in the context. */
export function buildProgramImage({ work, name, node, beside = [], without = [] }: ProgramImage): void {
  const below = join(work, 'node');
  mkdirSync(below, { recursive: true });
  cpSync(join(REPO, 'node_modules/node/bin/node'), join(below, 'node'));
  writeFileSync(join(below, 'Dockerfile'), `FROM ${BASE_IMAGE}\nCOPY node /usr/local/bin/node\n`);
  built(node, below);
  built(name, context(work, beside, without), '-f', join(REPO, 'Dockerfile'), '--build-arg', `BASE=${node}`);
}

/** Their folders and those of everything below them, as the lock file has them at the top. */
function withNeeds(names: readonly string[], { packages }: Locked): string[] {
  const found = new Set<string>();
  const add = (name: string): void => {
    const path = `node_modules/${name}`;
    if (found.has(path) || !packages[path]) return;
    found.add(path);
    for (const need of Object.keys(packages[path].dependencies ?? {})) add(need);
  };
  for (const name of names) add(name);
  return [...found];
}

/** The published files with their packages beside them. */
function context(work: string, beside: readonly string[], without: readonly string[]): string {
  const folder = join(work, 'context');
  mkdirSync(folder, { recursive: true });
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', work], {
      cwd: REPO,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(work, packed.filename), '-C', folder, '--strip-components=1']);
  const lock = JSON.parse(readFileSync(join(REPO, 'package-lock.json'), 'utf8')) as Locked;
  const wanted = withNeeds(beside, lock);
  for (const [path, { dev, devOptional }] of Object.entries(lock.packages)) {
    if (!path.startsWith('node_modules/') || !existsSync(join(REPO, path))) continue;
    if ((dev || devOptional) && !wanted.some((one) => path === one || path.startsWith(`${one}/`))) continue;
    if (without.some((left) => path.startsWith(`node_modules/${left}`))) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(REPO, path), join(folder, path), { recursive: true, force: false });
  }
  return folder;
}
