// Harbor tasks that others wrote (deep-swe in ../shared/data/tasks), on images that this machine can make. Their own images lie in a registry;
// here the same commit of the same repository stands on the base image of the tests, with the packages that their Dockerfiles install.
// Instruction, solution, tests and task.toml are theirs, but for the two names of images.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, imageContent } from '../../../src/demo/baseImage.ts';
import { REPO } from '../cli.ts';
import { BASE_IMAGE } from '../dockerEnvironment.ts';

const ARCHIVE = join(REPO, '..', 'shared', 'data', 'tasks', 'deep-swe.tar.xz');

interface Recipe {
  readonly repository: string;
  /** What its Dockerfile installs beside the project itself. */
  readonly packages: readonly string[];
  /** Where the project's package is, below the work tree. */
  readonly source?: string;
  /** The project as installed packages know it: its name, and what it offers to others. */
  readonly name: string;
  readonly entryPoints?: (app: string) => string;
  /** Its commands, as entry points say them. */
  readonly scripts?: readonly string[];
  /** Run in the work tree before it is copied into the image. */
  readonly prepare?: string;
}

const RECIPES: Readonly<Record<string, Recipe>> = {
  'mashumaro-flattened-dataclass-fields': {
    ...{ repository: 'Fatal1ty/mashumaro', name: 'mashumaro' },
    packages: ['pytest', 'typing_extensions'],
  },
  'dateutil-rfc5545-timezone-interop': {
    ...{ repository: 'dateutil/dateutil', name: 'python-dateutil', source: 'src' },
    packages: ['pytest<9', 'pytest-cov', 'six', 'hypothesis', 'freezegun'],
    prepare: `echo src/dateutil/zoneinfo/dateutil-zoneinfo.tar.gz >> .git/info/exclude
      python3 -m pip download -q --no-deps --only-binary=:all: -d "$SCRATCH" python-dateutil==2.9.0.post0
      python3 -m zipfile -e "$SCRATCH"/python_dateutil-*.whl "$SCRATCH/wheel"
      cp "$SCRATCH/wheel/dateutil/zoneinfo/dateutil-zoneinfo.tar.gz" src/dateutil/zoneinfo/`,
  },
  'returns-validated-error-accumulation': {
    ...{ repository: 'dry-python/returns', name: 'returns' },
    packages: ['pytest', 'typing_extensions', 'hypothesis', 'pytest-subtests', 'anyio'],
    entryPoints: () =>
      `[hypothesis]\n_ = returns.contrib.hypothesis._entrypoint\n[pytest11]\nreturns = returns.contrib.pytest.plugin\n`,
  },
  'sqlfmt-create-table-ddl-formatting': {
    ...{ repository: 'tconbeer/sqlfmt', name: 'shandy-sqlfmt', source: 'src' },
    scripts: ['sqlfmt = sqlfmt.cli:sqlfmt'],
    packages: [
      'pytest<9',
      'pytest-timeout',
      'click',
      'tqdm',
      'platformdirs',
      'jinja2',
      'black',
      'tomli',
      'gitpython',
    ],
    prepare: `cd tests/data/unit_tests/test_api/test_file_discovery/a_directory
      rm -rf symlink_target_directory && ln -sf symlink_source_directory symlink_target_directory`,
  },
  'textual-richlog-follow-state': {
    ...{ repository: 'Textualize/textual', name: 'textual', source: 'src' },
    packages: [
      'pytest',
      'pytest-asyncio',
      'rich',
      'markdown-it-py[linkify]',
      'mdit-py-plugins',
      'platformdirs',
      'pygments',
      'typing_extensions',
    ],
  },
  'bandit-incremental-cache-control': {
    ...{ repository: 'PyCQA/bandit', name: 'bandit' },
    scripts: [
      'bandit = bandit.cli.main:main',
      'bandit-config-generator = bandit.cli.config_generator:main',
      'bandit-baseline = bandit.cli.baseline:main',
    ],
    packages: [
      ...['pytest', 'PyYAML', 'stevedore', 'rich', 'testtools', 'fixtures', 'stestr', 'GitPython'],
      ...['beautifulsoup4', 'sarif-om>=1.0.4', 'jschema-to-python>=1.2.3', 'tomli', 'lxml', 'setuptools'],
    ],
    entryPoints: (app) =>
      readFileSync(join(app, 'setup.cfg'), 'utf8')
        .split('[entry_points]\n')[1]!
        .split(/^\[/m)[0]!
        .replaceAll(/^\s*(#.*)?\n/gm, '')
        .replaceAll(/^(\S+) =$/gm, '[$1]'),
  },
};
export const GIVEN_TASKS = Object.keys(RECIPES);

const sh = (
  command: string,
  args: readonly string[],
  cwd?: string,
  env: Record<string, string> = {},
): string =>
  execFileSync(command, args, {
    ...{ cwd, encoding: 'utf8', env: { ...process.env, ...env }, maxBuffer: 2 ** 28, timeout: 600_000 },
  });

/** A folder of clones named OWNER+NAME/repo goes before the network. */
function sourceOf(repository: string): string {
  const mirror = process.env.SWEBATCH_TEST_REPOSITORIES;
  const local = mirror ? join(mirror, repository.replace('/', '+'), 'repo') : '';
  return existsSync(local) ? local : `https://github.com/${repository}`;
}

/** One commit on a branch, as their Dockerfiles leave it. */
function checkOut(repository: string, commit: string, into: string): void {
  mkdirSync(into);
  // A server may be asked for a commit that is no branch's newest; a local clone must be told that.
  const allowed = {
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'uploadpack.allowAnySHA1InWant',
    GIT_CONFIG_VALUE_0: 'true',
  };
  sh('git', ['init', '-q', '-b', 'main'], into);
  sh('git', ['fetch', '-q', '--depth', '1', sourceOf(repository), commit], into, allowed);
  sh('git', ['checkout', '-q', '-B', 'main', 'FETCH_HEAD'], into);
  sh('git', ['config', 'core.hooksPath', '/dev/null'], into);
}

const scriptOf = (entry: string): string => {
  const [name, at] = entry.split(' = ') as [string, string];
  const [module, main] = at.split(':') as [string, string];
  const text = `#!/usr/bin/python3\\nimport sys\\nfrom ${module} import ${main}\\nsys.exit(${main}())\\n`;
  return `printf '${text}' > /usr/local/bin/${name} && chmod +x /usr/local/bin/${name}`;
};

/** Debian's Python looks in /usr/local first; the project goes before a release of it that others depend on. */
const dockerfile = ({ source, scripts = [] }: Recipe): string => `FROM ${BASE_IMAGE}
COPY site /usr/local/lib/python3.11/dist-packages
COPY app /app
RUN ln -sf python3 /usr/bin/python && echo "import sys; sys.path.insert(0, '/app${source ? `/${source}` : ''}')" > /usr/local/lib/python3.11/dist-packages/project.pth
RUN ${['pytest = pytest:console_main', ...scripts].map(scriptOf).join(' && ')}
WORKDIR /app
CMD ["/bin/bash"]
`;

/** Builds the image of a task unless it is there; returns its name. */
async function imageFor(id: string, recipe: Recipe, commit: string): Promise<string> {
  const { repository, packages, name, entryPoints, prepare } = recipe;
  const content = createHash('sha256')
    .update(JSON.stringify([BASE_IMAGE, commit, recipe, dockerfile(recipe)]))
    .digest('hex');
  // The verifier's image is named by its own folder alone, which says FROM this one.
  const image = `swebatch-test/given-${id}:${content.slice(0, 12)}`;
  if (imageContent(image) === content) return image;
  const context = mkdtempSync(join(tmpdir(), 'swebatch-given-'));
  try {
    const [app, site, scratch] = ['app', 'site', 'scratch'].map((part) => join(context, part)) as [
      string,
      string,
      string,
    ];
    checkOut(repository, commit, app);
    mkdirSync(scratch);
    if (prepare) sh('bash', ['-euc', prepare], app, { SCRATCH: scratch });
    rmSync(scratch, { recursive: true });
    const target = [
      '--target',
      site,
      '--only-binary=:all:',
      '--python-version',
      '3.11',
      '--implementation',
      'cp',
    ];
    const platforms = ['manylinux2014_x86_64', 'manylinux_2_28_x86_64'].flatMap((one) => ['--platform', one]);
    sh('python3', ['-m', 'pip', 'install', '-q', ...target, ...platforms, ...packages]);
    const info = join(site, `${name.replaceAll('-', '_')}-99.0.0.dist-info`);
    mkdirSync(info);
    writeFileSync(
      join(info, 'METADATA'),
      `Metadata-Version: 2.1\nName: ${name}\nVersion: 99.0.0\nAuthor: its authors\n`,
    );
    if (entryPoints) writeFileSync(join(info, 'entry_points.txt'), entryPoints(app));
    await build(image, context, dockerfile(recipe), content);
    return image;
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

export interface GivenTask {
  readonly id: string;
  /** What its instruction begins with. */
  readonly begins: string;
  /** Applies and commits its solution. */
  readonly solve: string;
  /** Looks through the whole file system for its tests, its grader and its solution; prints "searched N files". */
  readonly search: string;
}

const asBase64 = (text: string): string => Buffer.from(text).toString('base64');

/** Lines of the hidden tests that neither the repository nor the solution has, and one of the grader. */
function hiddenWords(folder: string, solution: string): string[] {
  const tests = readFileSync(join(folder, 'tests', 'test.patch'), 'utf8').split('\n');
  const own = tests
    .filter((line) => line.startsWith('+') && !line.startsWith('+++') && line.length > 40)
    .map((line) => line.slice(1).trim())
    .filter((line) => !solution.includes(line));
  return [own[Math.floor(own.length / 2)]!, own.at(-1)!, 'tools/sync_verifier.py'];
}

function taskAt(folder: string, id: string): GivenTask {
  const solution = readFileSync(join(folder, 'solution', 'solution.patch'), 'utf8');
  const words = asBase64(`${hiddenWords(folder, solution).join('\n')}\n`);
  const places = '--exclude-dir=proc --exclude-dir=sys --exclude-dir=dev';
  return {
    id,
    begins: readFileSync(join(folder, 'instruction.md'), 'utf8').trim().slice(0, 60),
    solve: `cd /app && echo ${asBase64(solution)} | base64 -d | git apply --whitespace=nowarn && git checkout -q -b feature/solution && git add -A && git -c user.name=a -c user.email=a@b commit -q --no-verify -m done && echo applied`,
    // The words are not in the command as they are, so that it does not find itself.
    search: `echo ${words} | base64 -d > /dev/shm/words; echo "searched $(LC_ALL=C grep -rlFf /dev/shm/words / ${places} 2>/dev/null | wc -l) files$(ls -d /tests /solution /logs/verifier 2>/dev/null | sed 's/^/, and /')"; rm /dev/shm/words`,
  };
}

/** The folders with the tasks, or why they cannot be had. */
export async function givenTasks(dir: string): Promise<{ folder: string; tasks: GivenTask[] } | string> {
  if (!existsSync(ARCHIVE)) return 'the given tasks are not on this machine (../shared/data/tasks)';
  const unpacked = join(dir, 'given');
  mkdirSync(unpacked);
  sh('tar', ['-xf', ARCHIVE, '-C', unpacked]);
  const folder = join(dir, 'tasks');
  const tasks: GivenTask[] = [];
  for (const [id, recipe] of Object.entries(RECIPES)) {
    cpSync(join(unpacked, 'tasks', id), join(folder, id), { recursive: true });
    const read = (name: string) => readFileSync(join(folder, id, name), 'utf8');
    const write = (name: string, text: string) => writeFileSync(join(folder, id, name), text);
    const commit = /^ARG BASE_SHA=([0-9a-f]{40})$/m.exec(read('environment/Dockerfile'))![1]!;
    let image: string;
    try {
      image = await imageFor(id, recipe, commit);
    } catch (error) {
      return `${id} cannot be rebuilt here: ${(error as Error).message.slice(-600)}`;
    }
    write('task.toml', read('task.toml').replace(/^docker_image = .*$/m, `docker_image = "${image}"`));
    write('tests/Dockerfile', read('tests/Dockerfile').replace(/^FROM .*$/m, `FROM ${image}`));
    tasks.push(taskAt(join(folder, id), id));
  }
  return { folder, tasks };
}
