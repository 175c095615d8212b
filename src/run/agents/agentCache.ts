/**
 * Agents that were added, on this machine: a file that says what one consists of, and its packages under the names of their hashes.
 * A manifest is written last: what it names is complete.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { isTemporary, writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { isAlive } from '../../base/isAlive.ts';
import type { Program } from '../../environment/programs/program.ts';
import { type Variables, variable } from '../caller.ts';

const packageSchema = z.object({
  name: z.string(),
  version: z.string(),
  integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/),
  licence: z.string(),
  folder: z.string().regex(/^[a-z]+$/),
  bytes: z.number(),
});
const manifestSchema = z.object({
  format: z.literal(1),
  agent: z.string(),
  version: z.string(),
  architecture: z.enum(['amd64', 'arm64']),
  addedAt: z.string(),
  variants: z.array(
    z.object({ libc: z.enum(['glibc', 'musl']).nullable(), packages: z.array(packageSchema) }),
  ),
  /** The facts of a program that its user named by where it comes from. */
  program: z
    .object({
      source: z.string(),
      commands: z.array(z.string()),
      contains: z.array(
        z.object({ name: z.string(), version: z.string(), integrity: z.string().nullable() }),
      ),
    })
    .optional(),
});
export type AddedAgent = z.infer<typeof manifestSchema>;
export type AddedPackage = z.infer<typeof packageSchema>;

export const agentCacheDir = (env: Variables): string =>
  join(
    variable(env, 'XDG_CACHE_HOME') ?? join(variable(env, 'HOME') ?? homedir(), '.cache'),
    'swebatch',
    'agents',
  );

export const addedName = ({ agent, version }: Pick<AddedAgent, 'agent' | 'version'>): string =>
  `${agent}@${version}`;

const manifestPath = (dir: string, agent: Pick<AddedAgent, 'agent' | 'version'>): string =>
  pathInside(dir, `${addedName(agent)}.json`);

const packageFile = (dir: string, integrity: string): string =>
  join(dir, 'packages', `${Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex')}.tgz`);

/** The agents in the order of their names. A file that is no manifest is passed over: another version may have written it. */
export function addedAgents(dir: string): AddedAgent[] {
  const files = existsSync(dir) ? readdirSync(dir) : [];
  const found: AddedAgent[] = [];
  for (const file of files.filter((f) => f.endsWith('.json') && !isTemporary(f)).sort()) {
    const parsed = manifestSchema.safeParse(parse(readFileSync(join(dir, file), 'utf8')));
    if (parsed.success && file === `${addedName(parsed.data)}.json`) found.push(parsed.data);
  }
  return found;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * A folder for a program on its way into the cache; the caller removes it. Folders that killed processes of this machine left go now (observed:
 * tests/run/agents/addProgram.test.ts).
 */
export async function folderForAdding(dir: string): Promise<string> {
  makeFolder(dir);
  const ours = `.adding-${hostname()}-`;
  for (const name of readdirSync(dir).filter((one) => one.startsWith(ours))) {
    const [, pid] = /^(\d+)-[A-Za-z0-9]{6}$/.exec(name.slice(ours.length)) ?? [];
    if (pid !== undefined && !isAlive(Number(pid)))
      await rm(join(dir, name), { recursive: true, force: true });
  }
  return mkdtemp(join(dir, `${ours}${process.pid}-`));
}

export const saveManifest = (dir: string, agent: AddedAgent): Promise<void> =>
  writeAtomically(manifestPath(dir, agent), `${JSON.stringify(agent, null, 2)}\n`);

export async function sha512Of(file: string): Promise<string> {
  const hash = createHash('sha512');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return `sha512-${hash.digest('base64')}`;
}

/** Whether the package is here under its hash; its content is not read. */
export const hasPackage = (dir: string, integrity: string): Promise<boolean> =>
  stat(packageFile(dir, integrity)).then(
    () => true,
    () => false,
  );

/** A fetched file whose hash was compared takes its place, at once. */
export async function keepPackage(dir: string, integrity: string, fetched: string): Promise<number> {
  const path = packageFile(dir, integrity);
  makeFolder(dirname(path));
  await rename(fetched, path);
  return (await stat(path)).size;
}

export const packageBytes = async (dir: string, integrity: string): Promise<number> =>
  (await stat(packageFile(dir, integrity))).size;

/** undefined: the agent is as it was added; else a sentence (observed: tests/run/agents/installedAgents.test.ts). */
export async function packageProblem(
  dir: string,
  { name, version, integrity }: AddedPackage,
): Promise<string | undefined> {
  const file = packageFile(dir, integrity);
  if (!(await hasPackage(dir, integrity))) return `${name}@${version} is missing`;
  return (await sha512Of(file)) === integrity ? undefined : `${name}@${version} is damaged`;
}

/** Takes the manifest away, and packages that no other agent needs. */
export async function forgetAgent(dir: string, agent: AddedAgent): Promise<void> {
  await rm(manifestPath(dir, agent), { force: true });
  const needed = new Set(
    addedAgents(dir).flatMap(({ variants }) => variants.flatMap((v) => v.packages.map((p) => p.integrity))),
  );
  for (const { integrity } of agent.variants.flatMap((v) => v.packages))
    if (!needed.has(integrity)) await rm(packageFile(dir, integrity), { force: true });
}

/** The cached agent as containers get it. */
export const cachedProgram = (dir: string, agent: AddedAgent): Program => ({
  name: addedName(agent),
  architecture: agent.architecture,
  variants: agent.variants.map(({ libc, packages }) => ({
    libc,
    packages: packages.map(({ integrity, folder }) => ({
      file: packageFile(dir, integrity),
      integrity,
      folder,
    })),
  })),
});
