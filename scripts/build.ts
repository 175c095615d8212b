// `npm run build`: dist as it is published. The program is a bundle: every module of src and of the packages that it uses, in files that load
// fast; a module that is imported when it is needed stays a file of its own. Beside it lie the declarations of the library and what the
// program reads at run time (SQL, shell, JSON, the relay), each at its place below src.
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { type Plugin, rolldown } from 'rolldown';
import { minifySync } from 'rolldown/utils';
import { checkoutFacts } from '../src/run/plan/manifest.ts';
import { buildPrograms } from './buildPrograms.ts';

const ROOT = join(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'src');
export const TARGET = join(ROOT, 'dist');
/** Newer than every source that the bundle was made of. */
export const LAST_WRITTEN = join(TARGET, 'licences.txt');
const COMMAND = join(SOURCE, 'cli', 'bin.ts');

/** Stay packages: what is native or loaded by a worker from its path, and what a person installs for one cloud. */
const PACKAGES = ['better-sqlite3', 'hyparquet', 'hyparquet-compressors'];
const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const staysPackage = (id: string): boolean =>
  id.endsWith('.node') ||
  [...PACKAGES, ...Object.keys(peerDependencies)].some((name) => id === name || id.startsWith(`${name}/`));

/** A module knows its place below src from that of the file that it came into: all files of the bundle but the command lie in dist itself. */
const ownPlace: Plugin = {
  name: 'own-place',
  transform(code, id) {
    if (!id.startsWith(SOURCE) || id === COMMAND || !code.includes('import.meta.')) return null;
    const place = (path: string) =>
      `new URL(${JSON.stringify(`./${relative(SOURCE, path)}`)}, import.meta.url)`;
    const changed = code
      .replaceAll('import.meta.url', `${place(id)}.href`)
      .replaceAll(
        'import.meta.dirname',
        `process.getBuiltinModule('node:url').fileURLToPath(${place(dirname(id))})`,
      );
    // The lines stay where they are.
    return { code: changed, map: null };
  },
};

/**
 * The client of the engine loads ssh and gRPC when it is loaded itself. Its ssh is left out: an engine behind ssh is reached by the person's own
 * `ssh` (src/environment/places/endpoint.ts). gRPC is loaded when BuildKit builds an image.
 */
const whenNeeded: Plugin = {
  name: 'when-needed',
  transform(code, id) {
    const change = id.endsWith('/docker-modem/lib/modem.js')
      ? (["ssh = require('./ssh')", 'ssh = undefined'] as const)
      : id.endsWith('/dockerode/lib/docker.js')
        ? ([
            "withSession = require('./session')",
            "withSession = (...given) => require('./session')(...given)",
          ] as const)
        : undefined;
    if (change === undefined) return null;
    const changed = code.replace(change[0], change[1]);
    if (changed === code) throw new Error(`${id} has no ${change[0]}, where this build looks for it`);
    return { code: changed, map: null };
  },
};

/** Of our texts, and as wide as a letter: dashes, quotation marks, an ellipsis. */
const PUNCTUATION = String.raw`\u2013\u2014\u2018\u2019\u201c\u201d\u2026`;

/** What the program loads with the first client of an engine comes into the bundle too: by itself it would load ssh and gRPC. */
const engineInBundle: Plugin = {
  name: 'engine-in-bundle',
  transform(code, id) {
    if (id !== join(SOURCE, 'environment', 'places', 'chosenEngine.ts')) return null;
    const changed = code.replace("load('dockerode')", "require('dockerode')");
    if (changed === code) throw new Error(`${id} does not load dockerode where this build looks for it`);
    return { code: changed, map: null };
  },
};

/**
 * What yargs and the bars of progress lay out with it is nearly always ASCII. The class of all emoji alone takes 30 ms to make, for each of the
 * three copies.
 */
const widthWhenNeeded: Plugin = {
  name: 'width-when-needed',
  transform(code, id) {
    if (!/[\\/]string-width[\\/]index\.js$/.test(id) || !code.includes('Intl.Segmenter')) return null;
    const changed = code
      .replace(
        'const segmenter = new Intl.Segmenter();',
        'let intl; const segmenter = { segment: (text) => (intl ??= new Intl.Segmenter()).segment(text) };',
      )
      .replace(
        String.raw`const rgiEmojiRegex = /^\p{RGI_Emoji}$/v;`,
        () =>
          String.raw`let emoji; const rgiEmojiRegex = { test: (text) => (emoji ??= new RegExp('^\\p{RGI_Emoji}$', 'v')).test(text) };`,
      )
      .replace(
        /export default function stringWidth\(.*\) \{/,
        (head) =>
          String.raw`${head} if (typeof arguments[0] === 'string' && /^[\x20-\x7e${PUNCTUATION}]*$/.test(arguments[0])) return arguments[0].length;`,
      );
    if (!changed.includes('intl ??=') || !changed.includes('arguments[0].length;'))
      throw new Error(`${id} is not what this build knows`);
    return { code: changed, map: null };
  },
};

/** Modules of Node that start slowly, and that a verb which only reads the record mostly does not use: each is loaded at the first call into it. */
const SLOW_MODULES = [
  ...['node:crypto', 'node:zlib', 'node:worker_threads', 'node:child_process', 'node:util'],
  // As a module it loads all that it has, a WebSocket too: a tenth of the start of a run.
  'node:http',
];
const builtinsWhenNeeded: Plugin = {
  name: 'builtins-when-needed',
  resolveId: (id, importer) =>
    SLOW_MODULES.includes(id) && importer?.startsWith(SOURCE) ? `\0needed:${id}` : null,
  load(id) {
    if (!id.startsWith('\0needed:')) return null;
    const name = id.slice('\0needed:'.length);
    const functions = Object.entries(process.getBuiltinModule(name) as Record<string, unknown>).flatMap(
      ([key, value]) => (typeof value === 'function' ? [[key, value] as const] : []),
    );
    const asked = functions.map(([key, value]) => {
      const there = `load().${key}`;
      if (/^[A-Z]/.test(key)) return `export function ${key}(...given) { return new (${there})(...given); }`;
      const call = `(...given) => ${there}(...given)`;
      // Some resolve to more than their last argument says, when they are promised.
      if (!(promisify.custom in value)) return `export const ${key} = ${call};`;
      const promised = `(...given) => process.getBuiltinModule('node:util').promisify(${there})(...given)`;
      return `export const ${key} = /* @__PURE__ */ Object.assign(${call}, { [Symbol.for('nodejs.util.promisify.custom')]: ${promised} });`;
    });
    return [`const load = () => process.getBuiltinModule(${JSON.stringify(name)});`, ...asked].join('\n');
  },
};

/** Packages that others ask for in case somebody has them: colours of `debug`, watched templates. Nobody has them beside an installed swebatch. */
const ABSENT = ['supports-color', 'chokidar'];
const absentHere: Plugin = {
  name: 'absent-here',
  resolveId: (id) => (ABSENT.includes(id) ? `\0absent:${id}` : null),
  load: (id) => (id.startsWith('\0absent:') ? "throw new Error('this package is not there');" : null),
};

/** Packages of others: nobody reads them there, and a stack still names their functions. */
const WITHOUT_BLANKS = {
  compress: { keepNames: { function: true, class: true } },
  mangle: { keepNames: true },
};

/**
 * Loaded at once when they are first needed, which only `require` can do: each is a small package of its own in dist, with its main file and its
 * manifest where `require` and `require.resolve` find them in the package itself.
 */
const REQUIRED: Readonly<Record<string, string>> = {
  '@pydantic/genai-prices': 'prices',
  'string-width': 'stringWidth',
};
const MAIN_FILE = join('dist', 'index.cjs');
const required: Plugin = {
  name: 'required',
  transform(code, id) {
    if (!id.startsWith(SOURCE) || !code.includes('createRequire')) return null;
    const changed = Object.entries(REQUIRED).reduce((text, [name, folder]) => {
      const path = relative(dirname(id), join(SOURCE, 'packages', folder, MAIN_FILE));
      return text.replaceAll(`('${name}')`, `('${path}')`);
    }, code);
    return changed === code ? null : { code: changed, map: null };
  },
};

/** Resolves to the modules that they are made of. */
async function bundleRequired(): Promise<string[]> {
  const made = Object.entries(REQUIRED).map(async ([name, folder]) => {
    const build = await rolldown({
      input: { index: name },
      platform: 'node',
      external: (id) => staysPackage(id),
      plugins: [absentHere, widthWhenNeeded],
      cwd: ROOT,
    });
    const home = join(TARGET, 'packages', folder);
    const { output } = await build.write({
      file: join(home, MAIN_FILE),
      format: 'cjs',
      exports: 'named',
      comments: false,
      codeSplitting: false,
      minify: WITHOUT_BLANKS,
    });
    await build.close();
    const { version } = JSON.parse(
      readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'),
    ) as { readonly version: string };
    writeFileSync(join(home, 'package.json'), `${JSON.stringify({ name, version })}\n`);
    return output.flatMap((one) => (one.type === 'chunk' ? one.moduleIds : []));
  });
  return (await Promise.all(made)).flat();
}

/** Licences ask that their text comes with the code. */
function licencesOf(modules: readonly string[]): string {
  const folders = new Set<string>();
  for (const id of modules) {
    const at = id.lastIndexOf(`${sep}node_modules${sep}`);
    if (at < 0) continue;
    const names = id.slice(at + 14).split(sep);
    folders.add(id.slice(0, at + 14) + names.slice(0, names[0]!.startsWith('@') ? 2 : 1).join(sep));
  }
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(folder, 'package.json'), 'utf8'),
      ) as Record<string, unknown>;
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      const text = file === undefined ? '' : `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
      return `${name} ${version} (${String(license)})\n${text}`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/**
 * Each file costs about a millisecond to find, read and link, so what is loaded together lies together: with the modules that they import, what
 * every verb loads; large packages; what reads the record; what works on a run. The rest is cut where verbs and leaves share it.
 */
const source = (...paths: readonly string[]) => {
  const ids = new Set(paths.map((path) => join(SOURCE, ...path.split('/'))));
  return (id: string) => ids.has(id);
};
const TOGETHER = [
  { name: 'core', test: source('cli/main.ts', 'cli/verbs/ls.ts', 'cli/verbs/show.ts') },
  { name: packageOf, debugName: 'packages', minSize: 100_000 },
  // everyDialect.ts waits for them while it is loaded: none may lie with what imports it.
  {
    name: 'dialects',
    test: (id: string) =>
      /[\\/]model[\\/]dialects[\\/].*Dialect\.ts$/.test(id) && !id.endsWith('everyDialect.ts'),
  },
  { name: 'show', test: source('cli/terminal/shownInstance.ts') },
  { name: 'report', test: source('cli/verbs/report.ts') },
  { name: 'run', test: source('cli/verbs/run.ts') },
].map((group, place, all) => ({ ...group, priority: all.length - place }));

/** The name of the package that a module belongs to; null for one of ours. */
function packageOf(id: string): string | null {
  const [name, inner] = id.split(`${sep}node_modules${sep}`).slice(1).at(-1)?.split(sep) ?? [];
  return name === undefined ? null : name.startsWith('@') ? `${name.slice(1)}-${inner}` : name;
}

/** The program and the library, without declarations. A few seconds. */
export async function bundle(): Promise<void> {
  const build = await rolldown({
    input: { 'cli/bin': COMMAND, index: join(SOURCE, 'index.ts') },
    platform: 'node',
    external: (id) => staysPackage(id),
    plugins: [
      absentHere,
      required,
      ownPlace,
      engineInBundle,
      whenNeeded,
      widthWhenNeeded,
      builtinsWhenNeeded,
    ],
  });
  const { output } = await build.write({
    dir: TARGET,
    format: 'esm',
    chunkFileNames: '[name]-[hash].js',
    sourcemap: true,
    // What licences ask to come along is in licences.txt.
    comments: false,
    codeSplitting: { groups: TOGETHER },
  });
  await build.close();
  for (const file of output) {
    if (file.type !== 'chunk' || file.moduleIds.some((id) => id.startsWith(SOURCE))) continue;
    const { code } = minifySync(file.fileName, file.code, WITHOUT_BLANKS);
    writeFileSync(join(TARGET, file.fileName), code);
    rmSync(join(TARGET, `${file.fileName}.map`), { force: true });
  }
  removeOldParts(new Set(output.map(({ fileName }) => fileName)));
  // What help lists, so that it need not load every verb.
  const { LISTED_VERBS, listVerbs } = await import('../src/cli/verbs.ts');
  writeFileSync(join(TARGET, 'cli', LISTED_VERBS), `${JSON.stringify(await listVerbs(), null, 1)}\n`);
  const modules = [
    ...output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])),
    ...(await bundleRequired()),
  ];
  chmodSync(join(TARGET, 'cli', 'bin.js'), 0o755);
  writeFileSync(LAST_WRITTEN, licencesOf(modules));
}

const OLD_MS = 3_600_000;

/** Parts of earlier bundles. A program that a test has started may still load one, but not an hour later. */
function removeOldParts(made: ReadonlySet<string>): void {
  for (const file of readdirSync(TARGET)) {
    const part = file.replace(/\.map$/, '');
    if (!/-[\w-]{8}\.js$/.test(part) || made.has(part)) continue;
    // Another build may have removed it by now.
    const { mtimeMs = Number.POSITIVE_INFINITY } =
      statSync(join(TARGET, file), { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs > OLD_MS) rmSync(join(TARGET, file), { force: true });
  }
}

/** Their objects are swebatch's own affair: a program that uses the library needs neither package for its types. */
const OPAQUE: Readonly<Record<string, string>> = {
  dockerode:
    'declare namespace Docker { type DockerOptions = Readonly<Record<string, unknown>>; } interface Docker {} export default Docker; export type DockerOptions = Docker.DockerOptions;',
  'better-sqlite3': 'declare namespace Database { interface Database {} } export default Database;',
};
const opaque: Plugin = {
  name: 'opaque',
  resolveId: {
    order: 'pre',
    handler: (id) => (Object.hasOwn(OPAQUE, id) ? `${TARGET}/opaque/${id}.d.ts` : null),
  },
  load: (id) => (id.startsWith(`${TARGET}/opaque/`) ? OPAQUE[id.slice(TARGET.length + 8, -5)]! : null),
};

/** The types of the library, as one file that holds what its exports are made of. zod stays a package: schemas are among them. */
async function declarations(): Promise<void> {
  // The tests need the bundle alone.
  const { dts } = await import('rolldown-plugin-dts');
  const build = await rolldown({
    input: { index: join(SOURCE, 'index.ts') },
    external: (id) => !/^[./]/.test(id) && !Object.hasOwn(OPAQUE, id),
    checks: { bundlerTimings: false },
    plugins: [
      opaque,
      dts({
        dtsOnly: true,
        tsconfig: join(ROOT, 'tsconfig.build.json'),
        // TypeScript is pinned: that the generator for it is an old one asks nothing of whoever builds.
        logger: { info() {}, warn() {}, error: console.error },
      }),
    ],
  });
  await build.write({ dir: TARGET, format: 'esm' });
  await build.close();
}

/** What is read at run time. The page has a build of its own (`npm run build:viewer`). */
export function copyAssets(): void {
  for (const entry of readdirSync(SOURCE, { recursive: true, withFileTypes: true })) {
    const path = relative(SOURCE, join(entry.parentPath, entry.name));
    if (!entry.isFile() || /\.tsx?$/.test(path) || path.startsWith(join('viewer', 'page'))) continue;
    mkdirSync(dirname(join(TARGET, path)), { recursive: true });
    cpSync(join(SOURCE, path), join(TARGET, path));
  }
  // An installed package has no repository to ask which commit it is.
  writeFileSync(join(TARGET, 'build.json'), `${JSON.stringify(checkoutFacts())}\n`);
}

if (import.meta.main) {
  mkdirSync(TARGET, { recursive: true });
  for (const file of readdirSync(TARGET, { recursive: true, encoding: 'utf8' }))
    if (/^[^/]*\.js(?:\.map)?$|\.d\.ts$/.test(file)) rmSync(join(TARGET, file));
  rmSync(join(TARGET, 'packages'), { recursive: true, force: true });
  rmSync(join(ROOT, '.cache', 'code'), { recursive: true, force: true });
  const declared = declarations();
  copyAssets();
  await bundle();
  process.stderr.write(`${buildPrograms()}\n`);
  await declared;
}
