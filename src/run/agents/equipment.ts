/** Instructions and skills that an arm names, read from this machine: what they are, their hash, and that they are still the recorded ones. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import type { AgentConfig } from '../../agent/agentConfig.ts';
import { type Equipment, namesEquipment, type Skill, type SkillFile } from '../../agent/equipment.ts';
import { orPackaged } from '../../base/files/packageFile.ts';
import { recordOf } from '../../base/isRecord.ts';
import { sha256 } from '../../base/sha256.ts';
import { fileErrorText } from '../../base/text/errorText.ts';
import { formatSize } from '../../base/text/units.ts';
import { readYaml } from '../../config/readConfig.ts';
import type { Environment } from '../../environment/environment.ts';
import { UserError } from '../userError.ts';

type Named = Pick<
  AgentConfig,
  'skills' | 'skills_sha256' | 'instructions' | 'instructions_sha256' | 'command'
>;

/** The most bytes of equipment: each attempt gets a copy of all of it. */
const MOST_BYTES = 16 * 2 ** 20;
const MOST_FILES = 2000;
const LONGEST_INSTRUCTIONS = 2 ** 20;

const refused = (key: string, why: string): UserError => new UserError(`agent.${key}: ${why}`);

/** Files that differ between copies of the same skills are no part of them. */
const PASSED_OVER = new Set(['.git', '.DS_Store', '__pycache__']);

interface Found extends SkillFile {
  readonly sha256: string;
}

function filesIn(folder: string): Found[] {
  const found: Found[] = [];
  let bytes = 0;
  const walk = (inner: string): void => {
    for (const entry of readdirSync(join(folder, inner), { withFileTypes: true })) {
      if (PASSED_OVER.has(entry.name)) continue;
      const path = inner === '' ? entry.name : `${inner}/${entry.name}`;
      if (entry.isDirectory()) {
        walk(path);
        continue;
      }
      if (!entry.isFile())
        throw refused(
          'skills',
          `${JSON.stringify(path.slice(0, 200))} is neither a file nor a folder: copy what it leads to`,
        );
      const content = readFileSync(join(folder, path));
      bytes += content.length;
      const executable = (statSync(join(folder, path)).mode & 0o111) !== 0;
      found.push({ path, content, executable, sha256: sha256(content) });
      if (bytes > MOST_BYTES || found.length > MOST_FILES)
        throw refused('skills', `${folder} holds more than ${formatSize(MOST_BYTES)} or ${MOST_FILES} files`);
    }
  };
  walk('');
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

const SKILL_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const HEAD = /^---\r?\n([\s\S]*?)\r?\n---/;

/** A skill as its format has it: YAML between two lines of dashes, with a name and a description. */
function skillOf(name: string, files: readonly Found[]): Skill {
  if (!SKILL_NAME.test(name))
    throw refused('skills', `the folder ${JSON.stringify(name.slice(0, 100))} cannot name a skill`);
  const text = Buffer.from(files.find(({ path }) => path === 'SKILL.md')!.content).toString('utf8');
  const head = HEAD.exec(text)?.[1];
  const { description } = recordOf(
    head === undefined ? null : readYaml(head, `agent.skills: ${name}/SKILL.md`),
  );
  if (typeof description !== 'string' || description.trim() === '')
    throw refused(
      'skills',
      `${name}/SKILL.md has no description: begin it with "---", "name: ${name}", "description: ...", "---"`,
    );
  return { name, description: description.trim().replace(/\s+/g, ' '), files };
}

function readSkills(path: string, cwd: string) {
  const folder = orPackaged(path, cwd);
  const files = readable('skills', folder, () => filesIn(folder));
  const single = files.some((file) => file.path === 'SKILL.md');
  const inFolders = Map.groupBy(files, (file) => (file.path.includes('/') ? file.path.split('/')[0]! : ''));
  const skills = single
    ? [skillOf(basename(folder), files)]
    : [...inFolders]
        .filter(([name, list]) => name !== '' && list.some((file) => file.path === `${name}/SKILL.md`))
        .map(([name, list]) =>
          skillOf(
            name,
            list.map((file) => ({ ...file, path: file.path.slice(name.length + 1) })),
          ),
        );
  if (skills.length === 0)
    throw refused('skills', `${folder} holds no skill: neither SKILL.md nor a folder with one`);
  const lines = files.map((file) => `${file.sha256} ${file.executable ? 'x' : '-'} ${file.path}\n`);
  return { skills, files, hash: sha256(lines.join('')) };
}

function readable<T>(key: string, path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw refused(key, `${path} cannot be read: ${fileErrorText(error)}`);
  }
}

function readInstructions(path: string, cwd: string) {
  const file = orPackaged(path, cwd);
  const bytes = readable('instructions', file, () => readFileSync(file));
  if (bytes.length > LONGEST_INSTRUCTIONS)
    throw refused('instructions', `${file} is larger than ${formatSize(LONGEST_INSTRUCTIONS)}`);
  return { text: bytes.toString('utf8'), bytes: bytes.length, hash: sha256(bytes) };
}

/** A run is one experiment: other files under the same path are another one (observed: tests/run/agents/equipment.test.ts). */
function sameAs(key: 'skills' | 'instructions', said: string | undefined, hash: string): void {
  if (said !== undefined && said !== hash)
    throw refused(
      key,
      `its files are not those of agent.${key}_sha256 (${said.slice(0, 12)}, and here are ${hash.slice(0, 12)}): put them back, or leave the hash out for a new run`,
    );
}

function read(agent: Named, cwd: string) {
  const { skills, skills_sha256, instructions, instructions_sha256 } = agent;
  for (const key of ['skills', 'instructions'] as const)
    if (agent[key] === undefined && agent[`${key}_sha256`] !== undefined)
      throw refused(`${key}_sha256`, `there is no agent.${key} beside it`);
  const of = {
    skills: skills === undefined ? null : readSkills(skills, cwd),
    instructions: instructions === undefined ? null : readInstructions(instructions, cwd),
  };
  if (of.skills) sameAs('skills', skills_sha256, of.skills.hash);
  if (of.instructions) sameAs('instructions', instructions_sha256, of.instructions.hash);
  return of;
}

/** The arm with the hashes of its files, which are what counts of them. Throws a UserError. */
export function withEquipment<T extends { readonly agent: AgentConfig }>(arm: T, cwd: string): T {
  const { skills, instructions } = read(arm.agent, cwd);
  if (!skills && !instructions) return arm;
  const hashes = {
    ...(skills && { skills_sha256: skills.hash }),
    ...(instructions && { instructions_sha256: instructions.hash }),
  };
  return { ...arm, agent: { ...arm.agent, ...hashes } };
}

/** The equipment of attempts; undefined where the arm gives none and no line asks for its place. Throws a UserError where the record differs. */
export function armEquipment(agent: Named, cwd: string): Equipment | undefined {
  const { skills, instructions } = read(agent, cwd);
  const { command } = agent;
  const named = namesEquipment(command, 'skills') || namesEquipment(command, 'instructions');
  if (!skills && !instructions && !named) return undefined;
  return { instructions: instructions?.text ?? null, skills: skills?.skills ?? null };
}

/**
 * With the skills that a task brings in a folder of its own container, as it is before the agent begins; one of the same name of the arm gives way.
 * Files that form no skill are passed over: the task is as its author made it.
 */
export async function withSkillsOfTask(
  equipment: Equipment | undefined,
  environment: Environment,
  folder: string | undefined,
): Promise<Equipment | undefined> {
  if (folder === undefined) return equipment;
  const { cwd } = environment.templateVars();
  const root = posix.resolve(typeof cwd === 'string' ? cwd : '/', folder);
  const files = environment.capabilities.readsFolders ? await environment.getFiles(root, MOST_BYTES) : [];
  const inFolders = Map.groupBy(files, ({ path }) => path.slice(root.length + 1).split('/')[0]!);
  const ofTask = [...inFolders].flatMap(([name, list]): Skill[] => {
    const below = list.map(({ path, content, mode }) => ({
      path: path.slice(root.length + name.length + 2),
      content,
      executable: (mode & 0o111) !== 0,
    }));
    const text = below.find(({ path }) => path === 'SKILL.md');
    if (!text || !SKILL_NAME.test(name)) return [];
    return [{ name, description: describedIn(Buffer.from(text.content).toString('utf8')), files: below }];
  });
  const names = new Set(ofTask.map(({ name }) => name));
  const ofArm = (equipment?.skills ?? []).filter(({ name }) => !names.has(name));
  return { instructions: equipment?.instructions ?? null, skills: [...ofTask, ...ofArm] };
}

/** '' where it has none that can be read. */
function describedIn(text: string): string {
  const head = HEAD.exec(text)?.[1];
  if (head === undefined) return '';
  try {
    const { description } = recordOf(readYaml(head, 'SKILL.md'));
    return typeof description === 'string' ? description.trim().replace(/\s+/g, ' ') : '';
  } catch {
    return '';
  }
}

/** The equipment for the record of a run: hashes and sizes; null where the arm gives nothing. */
export function equipmentFacts(agent: AgentConfig, cwd: string) {
  const { skills, instructions } = read(agent, cwd);
  const servers = agent.mcp_servers ?? [];
  if (!skills && !instructions && servers.length === 0) return null;
  return {
    ...(skills && {
      skills: {
        sha256: skills.hash,
        names: skills.skills.map(({ name }) => name),
        files: skills.files.map(({ path, sha256: hash, content }) => ({
          path,
          sha256: hash,
          bytes: content.length,
        })),
      },
    }),
    ...(instructions && { instructions: { sha256: instructions.hash, bytes: instructions.bytes } }),
    ...(servers.length > 0 && { mcp_servers: servers.map(({ name, transport }) => ({ name, transport })) }),
  };
}
