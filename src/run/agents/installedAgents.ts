/** `agents`: adding, checking and removing agents, without printing. */

import { rm } from 'node:fs/promises';
import { agentNamed, EXAMPLE, FETCHED, parseAgentSpec, parseProgram } from '../../agent/agents.ts';
import type { PackageArchitecture, WantedPackage } from '../../agent/contract.ts';
import { nearest } from '../../base/text/closest.ts';
import { removeProgramVolume } from '../../environment/places/leftovers.ts';
import { listProgramVolumes } from '../../environment/programs/programVolume.ts';
import type { Caller } from '../caller.ts';
import { requireEngine } from '../places/engines.ts';
import { UserError } from '../userError.ts';
import { addProgram } from './addProgram.ts';
import {
  type AddedAgent,
  type AddedPackage,
  addedAgents,
  addedName,
  agentCacheDir,
  folderForAdding,
  forgetAgent,
  hasPackage,
  keepPackage,
  packageBytes,
  packageProblem,
  saveManifest,
  sha512Of,
} from './agentCache.ts';
import { type NpmClient, npmCacheIn, npmClient } from './npm.ts';
import { programSource } from './programSource.ts';
import { sizeAt, type TellGrowth, watched } from './registryClient.ts';

type Around = Pick<Caller, 'env' | 'cwd' | 'tell'> & { readonly progress?: TellGrowth };

const ARCHITECTURES: Readonly<Record<PackageArchitecture, AddedAgent['architecture']>> = {
  x64: 'amd64',
  arm64: 'arm64',
};

/** Fetches what is not here yet. `spec` is an agent with its version, or where a program comes from; the latter may have a name of its own. */
export async function addAgent(spec: string, around: Around, name?: string): Promise<AddedAgent> {
  const source = programSource(spec);
  const wanted = source === undefined && name === undefined ? parseAgentSpec(spec) : null;
  if (source === undefined && !wanted?.version)
    throw new UserError(
      `"${spec}" names no agent with its version${nearest(spec.replace(/@.*$/s, ''), FETCHED)}`,
      {
        hint: `for example ${EXAMPLE}; agents are ${FETCHED.join(', ')}; of others say where they are: npm:NAME@1.2.3, pypi:NAME==1.2.3, a folder or a tar file`,
      },
    );
  const arch = process.arch;
  if (arch !== 'x64' && arch !== 'arm64')
    throw new UserError(`agents are made for x64 and arm64, and this machine is ${arch}`);
  const dir = agentCacheDir(around.env);
  const npm = npmClient(around.env, around.cwd);
  const architecture = ARCHITECTURES[arch];
  if (source !== undefined) {
    const one = (wantedPackage: Parameters<typeof addPackage>[2]) =>
      addPackage(npm, dir, wantedPackage, around);
    return addProgram(
      { source, text: spec, name },
      { npm, dir, arch, architecture, around, addPackage: one },
    );
  }
  return addKnown({ agent: wanted!.agent, version: wanted!.version! }, { npm, dir, arch, around });
}

/** A variant that the registry lacks is left out, with a note. */
async function addKnown(
  wanted: Pick<AddedAgent, 'agent' | 'version'>,
  { npm, dir, arch, around }: { npm: NpmClient; dir: string; arch: PackageArchitecture; around: Around },
): Promise<AddedAgent> {
  const spec = addedName(wanted);
  const { licence, variants } = (await agentNamed(wanted.agent))!.packages!(wanted.version, arch);
  const added: AddedAgent['variants'] = [];
  for (const { libc, packages } of variants) {
    const found: AddedPackage[] = [];
    for (const one of packages) {
      const here = await addPackage(npm, dir, { licence, ...one }, around);
      if (here) found.push(here);
    }
    if (found.length === packages.length) added.push({ libc, packages: found });
    else around.tell({ level: 'note', text: `${spec} is not published for ${libc ?? 'this machine'}` });
  }
  if (added.length === 0) throw new UserError(`the registry has no ${spec} for linux ${arch}`);
  const agent: AddedAgent = {
    format: 1,
    ...wanted,
    architecture: ARCHITECTURES[arch],
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
  { tell, progress }: Around,
): Promise<AddedPackage | null> {
  const published = await npm.view(name, version);
  if (!published) return null;
  const { integrity, address } = published;
  if (!(await hasPackage(dir, integrity))) {
    tell({ level: 'info', text: `fetching ${name}@${version}` });
    await fetchPackage(npm, dir, { name, version, integrity, address }, progress);
  }
  const bytes = await packageBytes(dir, integrity);
  return { name, version, integrity, licence: published.licence ?? licence, folder, bytes };
}

async function fetchPackage(
  npm: NpmClient,
  dir: string,
  {
    name,
    version,
    integrity,
    address,
  }: Pick<AddedPackage, 'name' | 'version' | 'integrity'> & { readonly address: string | undefined },
  progress: TellGrowth | undefined,
): Promise<void> {
  const folder = await folderForAdding(dir);
  try {
    const file = await watched(
      `${name}@${version}`,
      npmCacheIn(folder),
      progress,
      npm.fetch(name, version, folder),
      progress && address !== undefined ? sizeAt(address) : undefined,
    );
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
  const wanted = parseProgram(spec);
  const found = agents.filter(
    ({ agent, version }) => agent === wanted.agent && (wanted.version ?? version) === version,
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

/** Removes an agent's packages here, and its volumes on the default engine, where that answers. */
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
