// What npm would publish, unpacked, with the packages beside it that npm would install: copies, so that nothing of this checkout is found above them.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { REPO } from '../cli.ts';

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

interface Packed {
  /** For the archive. */
  readonly work: string;
  /** Gets the published files. */
  readonly into: string;
  /** Gets `node_modules` with the packages. */
  readonly root: string;
  /** Packages beside those of the program, with all that they need. */
  readonly beside?: readonly string[] | undefined;
}

export function installPacked({ work, into, root, beside = [] }: Packed): void {
  mkdirSync(into, { recursive: true });
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', work], {
      cwd: REPO,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(work, packed.filename), '-C', into, '--strip-components=1']);
  const lock = JSON.parse(readFileSync(join(REPO, 'package-lock.json'), 'utf8')) as Locked;
  const wanted = withNeeds(beside, lock);
  for (const [path, { dev, devOptional }] of Object.entries(lock.packages)) {
    if (!path.startsWith('node_modules/') || !existsSync(join(REPO, path))) continue;
    if ((dev || devOptional) && !wanted.some((one) => path === one || path.startsWith(`${one}/`))) continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    cpSync(join(REPO, path), join(root, path), { recursive: true, force: false });
  }
}
