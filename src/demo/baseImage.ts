/** The base image of the demo dataset and of the tests: Debian 12 with git, Python, pytest and Node, all from Debian's own packages. A registry is tried first, because it is quicker where there is one; without one, debootstrap makes the same system from a package mirror. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, CONTENT_LABEL, imageContent, run, runLoud } from './dockerCalls.ts';

/** Every image of the bundled dataset has a name that starts so. */
export const DEMO_IMAGES = 'swebatch-demo/';
export const BASE_IMAGE = `${DEMO_IMAGES}base:1`;

const SUITE = 'bookworm';
const REGISTRY_IMAGE = 'debian:12-slim';
/** A registry that does not answer must not cost minutes before the other way is taken. */
const PULL_TIMEOUT_MS = 45_000;
/** procps and friends are left out on purpose: published images seldom have them, and nothing here may rely on them. */
const PACKAGES = ['git', 'patch', 'python3', 'python3-pytest', 'nodejs', 'ca-certificates'];
/** Only what nobody reads in a container; a third of the size. */
const LEFT_OUT = [
  './usr/share/doc/*',
  './usr/share/man/*',
  './usr/share/locale/*',
  './var/cache/apt/*',
  './var/lib/apt/lists/*',
  './dev/*',
];
/** Raise it when the way the base is made changes without a change in the lists above. */
const REVISION = '1';
/** What a command in the container needs whatever started it; bytecode files would only dirty the work tree. */
const ENV: Record<string, string> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
  PYTHONDONTWRITEBYTECODE: '1',
};

export const baseContent = [REVISION, SUITE, ...PACKAGES].join('+');

export type Say = (line: string) => void;

/** How the base image was made. */
export type BaseImage = 'present' | 'registry' | 'debootstrap';

/** Makes the base image unless the one of this content is there. */
export async function ensureBase(say: Say, rebuild: boolean): Promise<BaseImage> {
  if (!rebuild && imageContent(BASE_IMAGE) === baseContent) return 'present';
  if (await fromRegistry(say)) return 'registry';
  await fromDebootstrap(say);
  return 'debootstrap';
}

async function fromRegistry(say: Say): Promise<boolean> {
  const present = run('docker', ['image', 'inspect', REGISTRY_IMAGE]).code === 0;
  if (!present) {
    say(`base image: trying to pull ${REGISTRY_IMAGE} ...`);
    const pulled = run('docker', ['pull', '--quiet', REGISTRY_IMAGE], PULL_TIMEOUT_MS);
    if (pulled.code !== 0) {
      say(`base image: no registry answers (${lastLine(pulled.stderr)})`);
      return false;
    }
  }
  const context = mkdtempSync(join(tmpdir(), 'swebatch-base-'));
  try {
    const env = Object.entries(ENV).map(([key, value]) => `ENV ${key}=${value}`);
    const install = `apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${PACKAGES.join(' ')} && rm -rf /var/lib/apt/lists/*`;
    await build(
      BASE_IMAGE,
      context,
      [`FROM ${REGISTRY_IMAGE}`, ...env, `RUN ${install}`].join('\n'),
      baseContent,
    );
    return true;
  } catch (error) {
    // A registry mirror without a package mirror behind it: the host may still reach one.
    say(
      `base image: ${REGISTRY_IMAGE} is there, but packages cannot be installed in it. ${(error as Error).message}`,
    );
    return false;
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

async function fromDebootstrap(say: Say): Promise<void> {
  if (run('debootstrap', ['--version']).code !== 0 || process.getuid?.() !== 0)
    throw new Error(
      `The base image needs either a registry that has ${REGISTRY_IMAGE}, or debootstrap run as root on Debian or Ubuntu. ` +
        'Neither is here. Give Docker access to a registry, or run as root: apt-get install debootstrap',
    );
  const work = mkdtempSync(join(tmpdir(), 'swebatch-base-'));
  const root = join(work, 'rootfs');
  try {
    say(`base image: making Debian ${SUITE} with debootstrap, about a minute ...`);
    const made = run('debootstrap', ['--variant=minbase', `--include=${PACKAGES.join(',')}`, SUITE, root]);
    if (made.code !== 0)
      throw new Error(`debootstrap failed:\n${made.stdout.split('\n').slice(-5).join('\n')}\n${made.stderr}`);
    const changes = [
      ...Object.entries(ENV).map(([key, value]) => `ENV ${key}=${value}`),
      'CMD ["bash"]',
      `LABEL ${CONTENT_LABEL}=${baseContent}`,
    ].flatMap((change) => ['--change', change]);
    const tar = join(work, 'base.tar');
    const excludes = LEFT_OUT.map((path) => `--exclude=${path}`);
    await runLoud('tar', ['-C', root, ...excludes, '--numeric-owner', '-cf', tar, '.']);
    const imported = run('docker', ['import', ...changes, tar, BASE_IMAGE]);
    if (imported.code !== 0) throw new Error(`docker import failed: ${imported.stderr}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
