/**
 * A package of PyPI with all that it depends on, and a Python beside it: this machine's own, with its standard library, every shared library
 * that it needs and their loader. So it runs on any image of this architecture, also on one with an older glibc, with musl or without Python.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { copyFile, cp, mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { errorFirst } from '../../base/text/errorFirst.ts';
import type { Variables } from '../caller.ts';
import { UserError } from '../userError.ts';
import { type PipAsked, pipSentence } from './pipSentence.ts';
import { ANSWER_MS, runClient } from './registryClient.ts';
import {
  BIN_NAME,
  binsOf,
  type Contained,
  inContainer,
  type StagedProgram,
  writeWrapper,
} from './stagedProgram.ts';

const pythonSchema = z.object({
  executable: z.string(),
  prefix: z.string(),
  stdlib: z.string(),
  version: z.string(),
});
type Python = z.infer<typeof pythonSchema>;

const ASK = `import json, os, sys, sysconfig
print(json.dumps({
  "executable": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
  "prefix": sys.base_prefix,
  "stdlib": sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}),
  "version": "%d.%d.%d" % sys.version_info[:3],
}))`;

const reportSchema = z.object({
  install: z.array(
    z.object({
      metadata: z.object({
        name: z.string(),
        version: z.string(),
        license: z.string().optional(),
        license_expression: z.string().optional(),
      }),
      download_info: z.object({
        archive_info: z.object({ hashes: z.record(z.string(), z.string()).optional() }).optional(),
      }),
    }),
  ),
});

interface PypiWanted {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
  readonly env: Variables;
  readonly cwd: string;
  readonly note: (text: string) => void;
}

export async function stagePypi({
  name,
  version,
  folder,
  env,
  cwd,
  note,
}: PypiWanted): Promise<StagedProgram> {
  const run = (words: readonly string[], limitMs?: number) =>
    runClient('python3', words, {
      ...{ env, cwd, limitMs },
      absent: 'install Python 3 with pip; the program brings a copy of it into its containers',
    });
  const spec = `${name}==${version}`;
  const python = await thisPython(run);
  const asked = { name, version, python: python.version };
  const first = await run(
    [
      ...PIP,
      '--dry-run',
      '--no-deps',
      '--ignore-installed',
      '--quiet',
      // pip tells why a connection broke only where it tries again.
      ...['--retries', '1', '--timeout', '4'],
      spec,
    ],
    // The program's interpreter was asked before.
    ANSWER_MS - 3000,
  );
  if (!first.ok) throw pipError('look up', first.errors, asked);
  const home = join(folder, 'python');
  const site = join(home, 'site');
  const report = join(folder, '..', 'report.json');
  const install = (how: string) =>
    run([
      ...PIP,
      how,
      '--target',
      site,
      '--no-user',
      '--no-compile',
      '--ignore-installed',
      '--report',
      report,
      '--quiet',
      spec,
    ]);
  let installed = await install('--only-binary=:all:');
  if (!installed.ok) {
    note(`${spec} or a package that it needs is not published ready to use: pip builds it here`);
    installed = await install('--prefer-binary');
  }
  if (!installed.ok) throw pipError('install', installed.errors, asked);
  const { install: packages } = reportSchema.parse(JSON.parse(await readFile(report, 'utf8')));
  await copyPython(python, home);
  await writeCommands(folder, site, name);
  const compile = ['-m', 'compileall', '-q', '-j', '0', '-s', folder, '-p', inContainer('').slice(0, -1)];
  // By the hash of the source: times are not kept in the program. A file that cannot be compiled is not needed.
  await run([...compile, '--invalidation-mode', 'unchecked-hash', home]);
  const own = packages.find(({ metadata }) => normal(metadata.name) === normal(name))?.metadata;
  const bins = await binsOf(folder);
  return {
    ...{ name: bins.includes(normal(name)) ? normal(name) : bins[0]!, version, libc: null, bins, beside: [] },
    licence: (own?.license_expression ?? own?.license ?? 'not told by its package')
      .split('\n', 1)[0]!
      .slice(0, 80),
    contains: [
      { name: 'python', version: python.version, integrity: null },
      ...packages
        .map(({ metadata, download_info }): Contained => {
          const sha256 = download_info.archive_info?.hashes?.sha256;
          return {
            ...{ name: metadata.name, version: metadata.version },
            integrity: sha256 ? `sha256:${sha256}` : null,
          };
        })
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    ],
  };
}

const PIP = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input'] as const;

/** A name as PyPI compares it. */
const normal = (name: string): string => name.replaceAll(/[-_.]+/g, '-').toLowerCase();

type RunPython = (words: readonly string[]) => ReturnType<typeof runClient>;

async function thisPython(run: RunPython): Promise<Python> {
  const asked = await run(['-c', ASK]);
  if (!asked.ok)
    throw new UserError(`this machine's Python does not start: ${errorFirst(asked.errors, 300)}`);
  return pythonSchema.parse(JSON.parse(asked.text));
}

const pipError = (what: string, said: string, asked: PipAsked): UserError =>
  new UserError(`pip could not ${what} ${asked.name}==${asked.version}: ${pipSentence(said, asked)}`, {
    hint: '"pip config list" shows where pip looks; the package must suit the Python of this machine',
  });

/** Parts of Python that no program needs, or that belong to the machine. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['__pycache__', 'site-packages', 'dist-packages', 'test', 'tests', 'idlelib', 'tkinter', 'turtledemo'],
  ...['ensurepip', 'sitecustomize.py'],
]);
const isLeftOut = (name: string): boolean =>
  LEFT_OUT.has(name) || name.startsWith('config-') || name.startsWith('_tkinter.') || name.endsWith('.a');

/** A tool of this machine, which says what it finds. */
const ask = promisify(execFile);

async function copyPython({ executable, prefix, stdlib }: Python, home: string): Promise<void> {
  const inside = stdlib.startsWith(`${prefix}/`)
    ? stdlib.slice(prefix.length + 1)
    : `lib/${basename(stdlib)}`;
  const lib = join(home, inside);
  await cp(stdlib, lib, {
    ...{ recursive: true, dereference: true },
    filter: (path) => path === stdlib || !isLeftOut(basename(path)),
  });
  await mkdir(join(home, 'elf'), { recursive: true });
  await copyFile(executable, join(home, 'elf', 'python3'));
  await copyLibraries(executable, home);
  await writeFile(
    join(lib, 'sitecustomize.py'),
    `import site\nsite.addsitedir(${JSON.stringify(inContainer('python/site'))})\n`,
  );
}

/** The libraries that a loader lists for one file: \`name => path (address)\`, and itself by its path alone. */
export function librariesIn(listed: string): {
  readonly loader: string | null;
  readonly paths: readonly string[];
} {
  const paths: string[] = [];
  let loader: string | null = null;
  for (const line of listed.split('\n')) {
    const [name = '', second = '', path = '', address = ''] = line.trim().split(' ');
    if (name.startsWith('/')) loader ??= name;
    else if (second === '=>' && path.startsWith('/') && address.startsWith('(0x')) paths.push(path);
  }
  return { loader, paths };
}

/** The libraries that a C library opens by their names, beside those that are linked. */
const BY_NAME = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2', 'libgcc_s.so.1', 'libstdc++.so.6'];

async function copyLibraries(executable: string, home: string): Promise<void> {
  const { stdout: own } = await ask('ldd', [executable]);
  const { loader, paths } = librariesIn(own);
  if (loader === null || loader.includes('musl'))
    throw new UserError(
      "this machine's Python is not linked with glibc, so it cannot be copied into containers",
      {
        hint: 'add programs of PyPI on a machine with glibc',
      },
    );
  const needed = new Set(paths);
  const modules = await sharedObjects(home);
  // The loader only lists: no code of a package runs.
  for (const file of modules) {
    const listed = await ask(loader, ['--list', file]).catch(() => ({ stdout: '' }));
    for (const path of librariesIn(listed.stdout).paths) if (!path.startsWith(home)) needed.add(path);
  }
  const libc = paths.find((path) => basename(path) === 'libc.so.6');
  for (const name of BY_NAME) if (libc) needed.add(join(dirname(libc), name));
  const into = join(home, 'so');
  await mkdir(into);
  for (const path of needed)
    await copyFile(
      await realpath(path).catch(() => path),
      join(into, basename(path)),
      constants.COPYFILE_EXCL,
    ).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
    });
  await copyFile(await realpath(loader), join(into, 'loader'));
  const python = paths.find((path) => basename(path).startsWith('libpython'));
  await writeWrapper(home, 'bin/python3', [
    ...[inContainer('python/so/loader'), '--library-path', inContainer('python/so')],
    ...['--argv0', inContainer('python/bin/python3')],
    // Else one of the image's could come first, by the path that is written in the program.
    ...(python === undefined ? [] : ['--preload', inContainer(`python/so/${basename(python)}`)]),
    inContainer('python/elf/python3'),
  ]);
}

async function sharedObjects(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && /\.so(?:\.\d+)*$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}

const ENTRY = /^([^\s=]+)\s*=\s*([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)/;

/** The commands that a package names, with the module and what is called in it. */
export function consoleScripts(
  text: string,
): { readonly name: string; readonly module: string; readonly call: string }[] {
  const lines = text.split('\n').map((line) => line.trim());
  const begins = lines.indexOf('[console_scripts]');
  const after = begins < 0 ? [] : lines.slice(begins + 1);
  const ends = after.findIndex((line) => line.startsWith('['));
  return after.slice(0, ends < 0 ? undefined : ends).flatMap((line) => {
    const [, name, module, call] = ENTRY.exec(line) ?? [];
    return name !== undefined && BIN_NAME.test(name) ? [{ name, module: module!, call: call! }] : [];
  });
}

async function writeCommands(folder: string, site: string, name: string): Promise<void> {
  const info = (await readdir(site)).find(
    (entry) =>
      entry.endsWith('.dist-info') && normal(entry.replace(/-[^-]*\.dist-info$/, '')) === normal(name),
  );
  const text = info ? await readFile(join(site, info, 'entry_points.txt'), 'utf8').catch(() => '') : '';
  await mkdir(join(folder, 'python', 'commands'), { recursive: true });
  for (const { name: bin, module, call } of consoleScripts(text)) {
    const path = `python/commands/${bin}`;
    const lines = [
      ...[
        'import sys',
        `from ${module} import ${call.split('.', 1)[0]}`,
        `sys.argv[0] = ${JSON.stringify(bin)}`,
      ],
      `sys.exit(${call}())`,
    ];
    await writeFile(join(folder, path), `${lines.join('\n')}\n`);
    // -I: nothing of the image's Python, and no variable of its, has an effect.
    await writeWrapper(folder, `bin/${bin}`, [inContainer('python/bin/python3'), '-I', inContainer(path)]);
  }
}
