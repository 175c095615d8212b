/** `agents add` for programs that swebatch does not know: fetched or copied once, hashed whole, with what their commands are. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { PackageArchitecture, WantedPackage } from '../../agent/contract.ts';
import { ADDED_FOLDER } from '../../agent/installed/addedProgram.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import type { Caller } from '../caller.ts';
import { UserError } from '../userError.ts';
import {
  type AddedAgent,
  type AddedPackage,
  addedAgents,
  addedName,
  hasPackage,
  keepPackage,
  saveManifest,
} from './agentCache.ts';
import { stageFolder, unpackTar } from './archiveProgram.ts';
import type { NpmClient } from './npm.ts';
import { stageNpm } from './npmProgram.ts';
import { packFolder } from './packFolder.ts';
import { checkProgramName, nameOfPath, type ProgramSource } from './programSource.ts';
import { stagePypi } from './pypiProgram.ts';
import { type TellGrowth, watched } from './registryClient.ts';
import type { StagedProgram } from './stagedProgram.ts';

export interface ProgramRequest {
  readonly source: ProgramSource;
  /** As it was typed. */
  readonly text: string;
  /** undefined: that of its first command. */
  readonly name: string | undefined;
}

interface Adding {
  readonly npm: NpmClient;
  readonly dir: string;
  readonly arch: PackageArchitecture;
  readonly architecture: AddedAgent['architecture'];
  readonly around: Pick<Caller, 'env' | 'cwd' | 'tell'> & { readonly progress?: TellGrowth };
  readonly addPackage: (one: WantedPackage & { readonly licence: string }) => Promise<AddedPackage | null>;
}

export async function addProgram(request: ProgramRequest, adding: Adding): Promise<AddedAgent> {
  const { dir, around, architecture } = adding;
  if (request.name !== undefined) checkProgramName(request.name);
  const here = await alreadyHere(request, dir);
  if (here) {
    around.tell({
      level: 'note',
      text: `${addedName(here)} is here already; "agents remove" it first to fetch it anew`,
    });
    return here;
  }
  makeFolder(dir);
  const work = await mkdtemp(join(dir, '.adding-'));
  try {
    const folder = join(work, 'program');
    await mkdir(folder);
    const staged = await stage(request, folder, work, adding);
    const name = checkProgramName(request.name ?? staged.name);
    around.tell({ level: 'info', text: `packing ${name}` });
    const file = join(work, 'program.tgz');
    const { integrity, bytes } = await packFolder(folder, file);
    const version =
      staged.version ?? `0.0.0-${Buffer.from(integrity.slice(7), 'base64').toString('hex').slice(0, 16)}`;
    const beside = await Promise.all(
      staged.beside.map((one) => adding.addPackage({ licence: staged.licence, ...one })),
    );
    if (beside.includes(null))
      throw new UserError(
        `the registry has no ${staged.beside.map((p) => `${p.name}@${p.version}`).join(', ')}`,
      );
    if (!(await hasPackage(dir, integrity))) await keepPackage(dir, integrity, file);
    const own: AddedPackage = {
      name,
      version,
      integrity,
      licence: staged.licence,
      folder: ADDED_FOLDER,
      bytes,
    };
    const agent: AddedAgent = {
      ...{ format: 1, agent: name, version, architecture, addedAt: new Date().toISOString() },
      variants: [{ libc: staged.libc, packages: [own, ...beside.filter((one) => one !== null)] }],
      program: { source: request.text, commands: [...staged.bins], contains: [...staged.contains] },
    };
    await saveManifest(dir, agent);
    return agent;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The dependencies of a package move on: the same version fetched twice may be two programs, and runs name it by its version. */
async function alreadyHere({ text, name }: ProgramRequest, dir: string): Promise<AddedAgent | undefined> {
  if (!/^(?:npm|pypi):/.test(text)) return undefined;
  const known = addedAgents(dir).find(
    ({ agent, program }) => program?.source === text && (name === undefined || agent === name),
  );
  const packages = known?.variants.flatMap((variant) => variant.packages) ?? [];
  const there = await Promise.all(packages.map(({ integrity }) => hasPackage(dir, integrity)));
  return there.includes(false) ? undefined : known;
}

async function stage(
  { source, text }: ProgramRequest,
  folder: string,
  work: string,
  { npm, arch, architecture, around }: Adding,
): Promise<StagedProgram> {
  const { env, cwd, tell, progress } = around;
  switch (source.kind) {
    case 'npm': {
      if (!(await npm.view(source.name, source.version)))
        throw new UserError(`the registry has no ${text.slice(4)}`);
      tell({ level: 'info', text: `fetching ${text} with everything that it needs` });
      return watched(text, work, progress, stageNpm(npm, { ...source, folder, arch }));
    }
    case 'pypi':
      tell({ level: 'info', text: `fetching ${text} with everything that it needs` });
      return watched(
        ...([text, work, progress] as const),
        stagePypi({ ...source, folder, env, cwd, note: (said) => tell({ level: 'note', text: said }) }),
      );
    case 'folder':
    case 'tar': {
      const path = resolve(cwd, source.path);
      const into = join(work, 'unpacked');
      await mkdir(into);
      const from = source.kind === 'tar' ? await unpackTar(path, into) : path;
      return stageFolder(from, folder, { name: nameOfPath(source.path), architecture });
    }
  }
}
