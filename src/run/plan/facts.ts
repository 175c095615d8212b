/** Facts about this machine and program for the manifest, which a reader needs to reproduce a result. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../../base/sha256.ts';
import { PACKAGE_ROOT, VERSION } from '../version.ts';

export interface ProgramFacts {
  readonly version: string;
  readonly commit: string | null;
  readonly dirty: boolean | null;
  /** Over what differs from the commit; null where nothing does. */
  readonly diff_sha256: string | null;
}

function git(args: readonly string[]): string | null {
  try {
    return execFileSync('git', ['-C', PACKAGE_ROOT, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 256 * 2 ** 20,
    }).trim();
  } catch {
    return null;
  }
}

/** `npm run build` writes it for an installed package, which has no repository. */
const buildSchema = z.object({
  commit: z.string().nullable(),
  dirty: z.boolean().nullable(),
  diff_sha256: z.string().nullable(),
});

const NO_CHECKOUT = { commit: null, dirty: null, diff_sha256: null };

export function programFacts(): ProgramFacts {
  const checkout = checkoutFacts();
  if (checkout.commit !== null) return { version: VERSION, ...checkout };
  const build = join(PACKAGE_ROOT, 'dist', 'build.json');
  const known = existsSync(build) ? buildSchema.safeParse(JSON.parse(readFileSync(build, 'utf8'))) : null;
  return {
    version: VERSION,
    ...(known?.success ? known.data : NO_CHECKOUT),
  };
}

/** Untracked files in the program's folders count as changes, because a module there is part of it. */
export function checkoutFacts(): Omit<ProgramFacts, 'version'> {
  // An installed package may lie inside another repository; only our own has package.json at its top.
  if (git(['rev-parse', '--show-toplevel']) !== PACKAGE_ROOT) return NO_CHECKOUT;
  const changed = git(['diff', 'HEAD']) ?? '';
  const unknown = git(['ls-files', '--others', '--exclude-standard', 'src', 'configs']) ?? '';
  const dirty = changed !== '' || unknown !== '';
  return {
    commit: git(['rev-parse', 'HEAD']),
    dirty,
    diff_sha256: dirty ? sha256(`${changed}\n${unknown}`) : null,
  };
}

export const machineFacts = () => ({
  node: process.versions.node,
  os: `${platform()} ${release()}`,
  arch: arch(),
  host: hostname(),
  cpus: cpus().length,
  memory_bytes: totalmem(),
});
