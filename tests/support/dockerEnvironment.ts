// Docker environments for tests: images made on the spot, factories whose containers are gone afterwards, facts about containers.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import {
  createDockerFactory,
  type DockerFactory,
  type DockerFactoryOptions,
} from '../../src/environment/docker/dockerFactory.ts';
import type { Environment, EnvironmentFactory, StartRequest } from '../../src/environment/environment.ts';
import type { EnvironmentConfig } from '../../src/environment/environmentConfig.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { docker } from './docker.ts';

export const BASE_IMAGE = 'swebatch-test/base:1';
const REPOSITORY = 'swebatch-envtest/derived';

const isHere = (image: string): Promise<boolean> =>
  docker
    .getImage(image)
    .inspect()
    .then(
      () => true,
      () => false,
    );

/** An image of BASE_IMAGE after a script, made once; named by the script, so that a changed one is another image. */
export async function derivedImage(
  script: string,
  base = BASE_IMAGE,
  entry: readonly string[] = [],
  settings: {
    readonly User?: string;
    readonly Env?: readonly string[];
    readonly Volumes?: Readonly<Record<string, object>>;
  } = {},
): Promise<string> {
  const named = Object.keys(settings).length > 0 ? [JSON.stringify(settings)] : [];
  const tag = createHash('sha256')
    .update([base, script, ...entry, ...named].join('\n'))
    .digest('hex')
    .slice(0, 16);
  const name = `${REPOSITORY}:${tag}`;
  if (await isHere(name)) return name;
  const container = await docker.createContainer({
    Image: base,
    Entrypoint: ['bash', '-ec', script],
    Cmd: [],
    NetworkDisabled: true,
    HostConfig: { NetworkMode: 'none' },
  });
  try {
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    if (StatusCode !== 0) {
      const logs = await container.logs({ stdout: true, stderr: true });
      throw new Error(`the script of a test image failed: ${logs.toString()}`);
    }
    await container.commit({
      // It has ended; rootless Podman could not pause it.
      _query: { container: container.id, repo: REPOSITORY, tag, pause: false },
      _body: { Entrypoint: [...entry], Cmd: ['bash'], ...settings },
    });
  } finally {
    await container.remove({ force: true });
  }
  return name;
}

/** What a run does not need of BASE_IMAGE. */
const LEFT_OUT = [
  ...['./proc/*', './sys/*', './dev/*', './usr/share', './usr/include', './var/lib', './var/cache', 'gconv'],
  ...['node*', 'libnode*', 'libicu*', 'perl*', 'libperl*', 'git-http*', 'git-remote-*', 'scalar'],
];

/** BASE_IMAGE with bash, git and what they load, a fifth of it: for tests that carry images to a registry or to another engine. */
export async function smallImage(
  python: 'with python' | 'without python' = 'without python',
): Promise<string> {
  const leftOut = python === 'with python' ? LEFT_OUT : [...LEFT_OUT, 'python3*'];
  const excludes = leftOut.map((path) => `--exclude=${path}`);
  const name = `${REPOSITORY}:small-${createHash('sha256').update(leftOut.join()).digest('hex').slice(0, 8)}`;
  if (await isHere(name)) return name;
  const packed = [
    'docker',
    'run',
    '--rm',
    '--network',
    'none',
    BASE_IMAGE,
    'tar',
    '-C',
    '/',
    ...excludes,
    '-cf',
    '-',
    '.',
  ];
  const env = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8'];
  const changes = [...env.map((one) => `ENV ${one}`), 'CMD ["bash"]'].flatMap((one) => ['--change', one]);
  const words = (line: readonly string[]) => line.map((word) => `'${word}'`).join(' ');
  const line = `${words(packed)} | ${words(['docker', 'import', ...changes, '-', name])}`;
  await promisify(execFile)('bash', ['-o', 'pipefail', '-c', line]);
  return name;
}

/** The test repository, the same for every environment of the conformance suite. */
export const REPOSITORY_SCRIPT = String.raw`
cd "$W"
git init -q -b main . 2>/dev/null || git init -q .
git config user.email dev@example.com; git config user.name Dev
printf 'hello\n' >README.md
mkdir -p src; printf 'print(1)\n' >src/a.py
printf 'node_modules/\n.venv/\n*.pyc\n' >.gitignore
git add -A; git commit -qm start
`;

export const repositoryImage = () =>
  derivedImage(`rm -rf /testbed; mkdir /testbed; W=/testbed; ${REPOSITORY_SCRIPT}`);

export interface TestDocker {
  start(options?: {
    config?: Partial<EnvironmentConfig>;
    image?: string;
    setup?: string;
    request?: Partial<StartRequest>;
    factory?: DockerFactoryOptions;
  }): Promise<Environment>;
  factory(config?: Partial<EnvironmentConfig>, options?: DockerFactoryOptions): DockerFactory;
  request(more?: Partial<StartRequest>): Promise<StartRequest>;
  stop(): Promise<void>;
}

let attempts = 0;
/** Unlike those of the tests that run beside these in another process. */
const nextAttempt = () => {
  attempts += 1;
  return `${process.pid}.${attempts}`;
};

export function testDocker(defaults: Partial<EnvironmentConfig> = {}): TestDocker {
  const factories: DockerFactory[] = [];
  const open: Environment[] = [];
  const factory: TestDocker['factory'] = (config = {}, options = {}) => {
    const made = createDockerFactory(
      environmentConfigSchema.parse({ pull: 'never', memory: '512m', ...defaults, ...config }),
      options,
    );
    factories.push(made);
    return made;
  };
  const request: TestDocker['request'] = async (more = {}) => ({
    instanceId: 'test__test-1',
    image: more.image ?? (await repositoryImage()),
    owner: currentOwner('test-run', nextAttempt()),
    ...more,
  });
  return {
    factory,
    request,
    async start(options = {}) {
      const environment = await factory(options.config, options.factory).start(
        await request({
          ...(options.image ? { image: options.image } : {}),
          ...(options.setup ? { startupCommand: options.setup } : {}),
          ...options.request,
        }),
      );
      open.push(environment);
      return environment;
    },
    async stop() {
      await Promise.all(open.splice(0).map((environment) => environment.close()));
      await Promise.all(factories.splice(0).map((one) => one.close()));
    },
  };
}

/** Starts another image where one of a registry or of PyPI is asked for. */
export const withImage = (
  factory: EnvironmentFactory,
  wanted: { readonly image: string },
  image: string,
): EnvironmentFactory => ({
  ...factory,
  start: (request) =>
    factory.start({ ...request, image: request.image === wanted.image ? image : request.image }),
});
