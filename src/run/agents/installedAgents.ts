/** `agents`: adding, checking and removing agents, without printing. */
import { type ExecFileException, execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { agentNamed, EXAMPLE, FETCHED, parseAgentSpec } from '../../agent/agents.ts';
import type { PackageArchitecture, WantedPackage } from '../../agent/contract.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { removeProgramVolume } from '../../environment/places/leftovers.ts';
import { listProgramVolumes } from '../../environment/programs/programVolume.ts';
import type { Caller, Variables } from '../caller.ts';
import { requireEngine } from '../places/engines.ts';
import { UserError } from '../userError.ts';
import {
  type AddedAgent,
  type AddedPackage,
  addedAgents,
  addedName,
  agentCacheDir,
  forgetAgent,
  hasPackage,
  keepPackage,
  packageBytes,
  packageProblem,
  saveManifest,
  sha512Of,
} from './agentCache.ts';

type Around = Pick<Caller, 'env' | 'cwd' | 'tell'>;

const ARCHITECTURES: Readonly<Record<PackageArchitecture, AddedAgent['architecture']>> = {
  x64: 'amd64',
  arm64: 'arm64',
};

/** Fetches what is not here yet. A variant that the registry lacks is left out, with a note. */
export async function addAgent(spec: string, around: Around): Promise<AddedAgent> {
  const wanted = parseAgentSpec(spec);
  if (!wanted?.version)
    throw new UserError(`"${spec}" names no agent with its version`, {
      hint: `for example ${EXAMPLE}; agents are ${FETCHED.join(', ')}`,
    });
  const arch = process.arch;
  if (arch !== 'x64' && arch !== 'arm64')
    throw new UserError(`agents are made for x64 and arm64, and this machine is ${arch}`);
  const dir = agentCacheDir(around.env);
  const npm = npmClient(around.env, around.cwd);
  const { licence, variants } = (await agentNamed(wanted.agent))!.packages!(wanted.version, arch);
  const added: AddedAgent['variants'] = [];
  for (const { libc, packages } of variants) {
    const found: AddedPackage[] = [];
    for (const one of packages) {
      const here = await addPackage(npm, dir, { licence, ...one }, around.tell);
      if (here) found.push(here);
    }
    if (found.length === packages.length) added.push({ libc, packages: found });
    else around.tell({ level: 'note', text: `${spec} is not published for ${libc ?? 'this machine'}` });
  }
  if (added.length === 0) throw new UserError(`the registry has no ${spec} for linux ${arch}`);
  const agent: AddedAgent = {
    ...{ format: 1, agent: wanted.agent, version: wanted.version, architecture: ARCHITECTURES[arch] },
    addedAt: new Date().toISOString(),
    variants: added,
  };
  await saveManifest(dir, agent);
  return agent;
}

async function addPackage(
  npm: NpmClient,
  dir: string,
  { name, version, folder, licence }: WantedPackage & { readonly licence: string },
  tell: Caller['tell'],
): Promise<AddedPackage | null> {
  const published = await npm.view(name, version);
  if (!published) return null;
  const { integrity } = published;
  if (!(await hasPackage(dir, integrity))) {
    tell({ level: 'info', text: `fetching ${name}@${version}` });
    await fetchPackage(npm, dir, { name, version, integrity });
  }
  const bytes = await packageBytes(dir, integrity);
  return { name, version, integrity, licence: published.licence ?? licence, folder, bytes };
}

async function fetchPackage(
  npm: NpmClient,
  dir: string,
  { name, version, integrity }: Pick<AddedPackage, 'name' | 'version' | 'integrity'>,
): Promise<void> {
  makeFolder(dir);
  const folder = await mkdtemp(join(dir, '.fetching-'));
  try {
    const file = await npm.fetch(name, version, folder);
    const found = await sha512Of(file);
    if (found !== integrity)
      throw new UserError(`what npm fetched as ${name}@${version} is not what the registry describes`, {
        hint: `its hash is ${found}, and ${integrity} was expected`,
      });
    await keepPackage(dir, integrity, file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const listAgents = ({ env }: Pick<Around, 'env'>): AddedAgent[] => addedAgents(agentCacheDir(env));

interface AgentCheck {
  readonly agent: AddedAgent;
  readonly problems: readonly string[];
}

/** Every package is read and compared with its hash. */
export async function verifyAgents(
  spec: string | undefined,
  { env }: Pick<Around, 'env'>,
): Promise<AgentCheck[]> {
  const dir = agentCacheDir(env);
  const checks: AgentCheck[] = [];
  for (const agent of chosen(spec, dir)) {
    const packages = agent.variants.flatMap((variant) => variant.packages);
    const problems = await Promise.all(packages.map((one) => packageProblem(dir, one)));
    checks.push({ agent, problems: problems.filter((problem) => problem !== undefined) });
  }
  return checks;
}

function chosen(spec: string | undefined, dir: string): AddedAgent[] {
  const agents = addedAgents(dir);
  if (spec === undefined) return agents;
  const wanted = parseAgentSpec(spec);
  const found = agents.filter(
    ({ agent, version }) => agent === wanted?.agent && (wanted.version ?? version) === version,
  );
  if (found.length > 0) return found;
  throw new UserError(`${spec} was not added`, {
    hint:
      agents.length > 0
        ? `there is ${agents.map(addedName).join(', ')}`
        : `for example: swebatch agents add ${EXAMPLE}`,
  });
}

interface RemovedAgent {
  readonly agent: string;
  readonly volumes: readonly string[];
  /** Volumes that a container still has. */
  readonly inUse: readonly string[];
}

/** Its packages here, and what was unpacked of it on the default engine, where that answers. */
export async function removeAgent(spec: string, { env, tell }: Omit<Around, 'cwd'>): Promise<RemovedAgent[]> {
  const dir = agentCacheDir(env);
  const removed: RemovedAgent[] = [];
  for (const agent of chosen(spec, dir)) {
    const volumes = await removeVolumes(addedName(agent), env).catch((error: Error) => {
      tell({ level: 'note', text: `the engine was not asked for unpacked programs: ${error.message}` });
      return { volumes: [], inUse: [] };
    });
    await forgetAgent(dir, agent);
    removed.push({ agent: addedName(agent), ...volumes });
  }
  return removed;
}

async function removeVolumes(program: string, env: Around['env']): Promise<Omit<RemovedAgent, 'agent'>> {
  const { docker } = requireEngine(env);
  const volumes: string[] = [];
  const inUse: string[] = [];
  for (const { volume, program: of } of await listProgramVolumes(docker))
    if (of === program) ((await removeProgramVolume(docker, volume)) ? volumes : inUse).push(volume);
  return { volumes, inUse };
}

interface NpmPackage {
  /** `sha512-…`: the hash of the file that the registry serves. */
  readonly integrity: string;
  readonly licence: string | null;
}

interface NpmClient {
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

function npmClient(env: Variables, cwd: string): NpmClient {
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
