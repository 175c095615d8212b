/**
 * The base image of the demo dataset and of the tests: Debian 12 with git, Python, pytest and Node, all from Debian's own packages. A registry is
 * tried first, because it is quicker where there is one; without one, debootstrap makes the same system from a package mirror.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
/** The version of the base's making: raise it for a change that the lists above do not show. */
const REVISION = '1';
/** The variables of every command in the container, whatever started it; bytecode files would only dirty the work tree. */
const ENV: Record<string, string> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
  PYTHONDONTWRITEBYTECODE: '1',
};

export const baseContent = [REVISION, SUITE, ...PACKAGES].join('+');

export type Say = (line: string) => void;

/** The source of the base image. */
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
    const packed = run('tar', ['-C', root, ...excludes, '--numeric-owner', '-cf', tar, '.']);
    if (packed.code !== 0) throw new Error(`tar failed: ${packed.stderr}`);
    const imported = run('docker', ['import', ...changes, tar, BASE_IMAGE]);
    if (imported.code !== 0) throw new Error(`docker import failed: ${imported.stderr}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

/** Label that carries the hash of everything an image was made from; equal hash means nothing to do. */
const CONTENT_LABEL = 'swebatch.content';

/** Runs a program to its end and keeps its output; never throws for an exit code. */
export function run(program: string, args: readonly string[], timeoutMs?: number) {
  const done = spawnSync(program, [...args], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs, killSignal: 'SIGKILL' as const }),
  });
  const stderr = done.error ? `${done.stderr ?? ''}${done.error.message}` : done.stderr;
  return { code: done.status ?? 1, stdout: done.stdout ?? '', stderr };
}

/** An image of swebatch has the engine's socket and no docker command, which builds them. */
export const canBuild = (): boolean => run('docker', ['--version']).code === 0;

/** The content hash an image was built from, or undefined when there is no such image. */
export function imageContent(name: string): string | undefined {
  const found = run('docker', [
    'image',
    'inspect',
    '--format',
    `{{index .Config.Labels "${CONTENT_LABEL}"}}`,
    name,
  ]);
  return found.code === 0 ? found.stdout.trim() : undefined;
}

/** Builds from a Dockerfile text in a context directory; the classic builder's output is shown only when it fails. */
export async function build(
  name: string,
  contextDir: string,
  dockerfile: string,
  content: string,
): Promise<void> {
  const before = imageId(name);
  await runBuild(name, contextDir, dockerfile, content);
  // The image that had this name is left without one; not forced, so one that a container still uses stays.
  if (before !== undefined && before !== imageId(name)) run('docker', ['rmi', before]);
}

function imageId(name: string): string | undefined {
  const found = run('docker', ['image', 'inspect', '--format', '{{.Id}}', name]);
  return found.code === 0 ? found.stdout.trim() : undefined;
}

function runBuild(name: string, contextDir: string, dockerfile: string, content: string): Promise<void> {
  const args = ['build', '--label', `${CONTENT_LABEL}=${content}`, '-t', name, '-f', '-', contextDir];
  // Without a value docker takes each from its environment, or leaves it out.
  for (const key of ['http_proxy', 'https_proxy', 'no_proxy']) args.splice(1, 0, '--build-arg', key);
  return new Promise((resolve, reject) => {
    const child = spawn('docker', args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
    child.once('error', (error) => reject(new Error(`docker could not be started: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) return resolve();
      const tail = Buffer.concat(output).toString('utf8').split('\n').slice(-30).join('\n');
      reject(new Error(`building the image ${name} failed:\n${tail}`));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(dockerfile);
  });
}
