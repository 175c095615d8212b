/** npm's own client, as its user has set it up: registry, proxy, login. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder } from '../../base/files/makeFolder.ts';
import type { Variables } from '../caller.ts';
import { UserError } from '../userError.ts';
import { ANSWER_MS, runClient } from './registryClient.ts';

interface NpmPackage {
  /** `sha512-…`: the hash of the file that the registry serves. */
  readonly integrity: string;
  readonly licence: string | null;
  /** The address of its file. */
  readonly address: string | undefined;
}

export interface NpmClient {
  /** null where the registry has no such package or version. */
  view(name: string, version: string): Promise<NpmPackage | null>;
  /** Path of the fetched file, in a folder of its own below `folder`. */
  fetch(name: string, version: string, folder: string): Promise<string>;
  /** The package and all that it depends on, for Linux with glibc, in `folder`/node_modules. None of their scripts runs. */
  install(name: string, version: string, folder: string): Promise<void>;
}

const viewed = z.object({
  'dist.integrity': z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/),
  license: z.union([z.string(), z.object({ type: z.string() }).transform(({ type }) => type)]).optional(),
  'dist.tarball': z
    .string()
    .regex(/^https?:/)
    .optional()
    .catch(undefined),
});
const failed = z.object({ error: z.object({ code: z.string().optional(), summary: z.string().optional() }) });

/**
 * The first question is to be answered, or to fail with its cause: npm would else try again for minutes without a word (observed:
 * tests/run/agents/addProgram.test.ts).
 */
const AT_ONCE = ['--fetch-retries=0', `--fetch-timeout=${ANSWER_MS - 4000}`];

/** The folder where a fetched package grows: the file beside it is a second copy. */
export const npmCacheIn = (folder: string): string => join(folder, 'npm-cache');

export function npmClient(env: Variables, cwd: string): NpmClient {
  const npm = (words: readonly string[], from = cwd, limitMs?: number) =>
    runClient('npm', words, {
      ...{ env, cwd: from, limitMs },
      absent: 'it comes with Node: see that "npm --version" answers',
    });
  return {
    async view(name, version) {
      const spec = `${name}@${version}`;
      const words = ['view', spec, 'name', 'license', 'dist.integrity', 'dist.tarball', '--json', ...AT_ONCE];
      const answer = await npm(words, cwd, ANSWER_MS);
      const body = jsonOf(answer.text);
      if (!answer.ok) {
        const error = failed.safeParse(body).data?.error;
        if (error?.code === 'E404') return null;
        throw npmError(`look up ${spec}`, error?.summary ?? answer.errors);
      }
      if (body === undefined) return null;
      const found = viewed.safeParse(body);
      if (!found.success)
        throw new UserError(`the registry names no sha512 hash for ${spec}: it cannot be trusted`);
      const { license, 'dist.integrity': integrity, 'dist.tarball': address } = found.data;
      return { integrity, licence: license ?? null, address };
    },
    async fetch(name, version, folder) {
      makeFolder(folder);
      const cache = npmCacheIn(folder);
      const answer = await npm([
        ...['pack', `${name}@${version}`, '--pack-destination', folder, '--cache', cache, '--ignore-scripts'],
      ]);
      await rm(cache, { recursive: true, force: true });
      if (!answer.ok) throw npmError(`fetch ${name}@${version}`, answer.errors);
      const file = (await readdir(folder)).find((entry) => entry.endsWith('.tgz'));
      if (file === undefined) throw npmError(`fetch ${name}@${version}`, 'it wrote no file');
      return join(folder, file);
    },
    async install(name, version, folder) {
      const answer = await npm(
        [
          ...['install', `${name}@${version}`, '--prefix', folder, '--ignore-scripts', '--omit=dev'],
          ...['--no-audit', '--no-fund', '--os=linux', `--cpu=${process.arch}`, '--libc=glibc'],
        ],
        folder,
      );
      if (!answer.ok) throw npmError(`install ${name}@${version}`, answer.errors);
    },
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** npm says what is wrong in lines that begin with "npm error". */
function npmError(what: string, said: string): UserError {
  const lines = said.split('\n').filter((line) => !/^npm (warn|notice)/i.test(line));
  const text = lines.map((line) => line.replace(/^npm error ?/i, '').trim()).filter(Boolean);
  return new UserError(`npm could not ${what}: ${text.slice(0, 4).join('; ') || 'it gave no reason'}`, {
    hint: '"npm config get registry" shows where npm looks',
  });
}
