/**
 * Packages by npm's own program: it knows the user's registry, proxy, certificates and logins. What it fetched is compared here once
 * more with the hash that the registry gave.
 */
import { type ExecFileException, execFile } from 'node:child_process';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder } from '../../base/files/makeFolder.ts';
import type { Variables } from '../caller.ts';
import { UserError } from '../userError.ts';

export interface NpmPackage {
  /** `sha512-…`: the hash of the file that the registry serves. */
  readonly integrity: string;
  readonly licence: string | null;
}

export interface NpmClient {
  /** null where the registry has no such package or version. */
  view(name: string, version: string): Promise<NpmPackage | null>;
  /** Path of the fetched file, in a folder of its own below `folder`. */
  fetch(name: string, version: string, folder: string): Promise<string>;
}

const viewed = z.object({
  'dist.integrity': z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/),
  license: z.union([z.string(), z.object({ type: z.string() }).transform(({ type }) => type)]).optional(),
});
const failed = z.object({ error: z.object({ code: z.string().optional(), summary: z.string().optional() }) });

const LONGEST_ANSWER = 16 * 1024 * 1024;
const FETCH_LIMIT_MS = 30 * 60_000;

interface Answer {
  readonly ok: boolean;
  readonly text: string;
  readonly errors: string;
}

export function npmClient(env: Variables, cwd: string): NpmClient {
  const npm = (...words: readonly string[]) => runNpm(words, env, cwd);
  return {
    async view(name, version) {
      const spec = `${name}@${version}`;
      const answer = await npm('view', spec, 'name', 'license', 'dist.integrity', '--json');
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
      return { integrity: found.data['dist.integrity'], licence: found.data.license ?? null };
    },
    async fetch(name, version, folder) {
      makeFolder(folder);
      const cache = join(folder, 'npm-cache');
      const words = ['--pack-destination', folder, '--cache', cache, '--ignore-scripts'];
      const answer = await npm('pack', `${name}@${version}`, ...words);
      await rm(cache, { recursive: true, force: true });
      if (!answer.ok) throw npmError(`fetch ${name}@${version}`, answer.errors);
      const file = (await readdir(folder)).find((entry) => entry.endsWith('.tgz'));
      if (file === undefined) throw npmError(`fetch ${name}@${version}`, 'it wrote no file');
      return join(folder, file);
    },
  };
}

function runNpm(words: readonly string[], env: Variables, cwd: string): Promise<Answer> {
  const options = { cwd, env: { ...env }, maxBuffer: LONGEST_ANSWER, timeout: FETCH_LIMIT_MS };
  return new Promise((resolve, reject) => {
    const done = (error: ExecFileException | null, stdout: string, stderr: string) => {
      if (error?.code === 'ENOENT')
        reject(
          new UserError('npm is not here, and agents are fetched with it', {
            hint: 'it comes with Node: see that "npm --version" answers',
          }),
        );
      else resolve({ ok: error === null, text: stdout, errors: stderr });
    };
    execFile('npm', [...words], options, done);
  });
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
