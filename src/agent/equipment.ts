/**
 * Instructions and skills that an arm gives its agent beside the task. Both are copied into the container, outside of the work tree, so that
 * the patch holds neither, and the repository's own AGENTS.md stays as it is: programs read both.
 */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import type { Environment, PlacedFile } from '../environment/environment.ts';
import { environmentKindOf } from '../environment/environments.ts';

export interface SkillFile {
  /** The file's path within the folder of its skill. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly executable: boolean;
}

export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly files: readonly SkillFile[];
}

export interface Equipment {
  /** null: the arm gives none. */
  readonly instructions: string | null;
  readonly skills: readonly Skill[] | null;
}

/** The equipment's places in the container. The paths are there also where an arm gives nothing: an empty folder and an empty file. */
export interface PlacedEquipment extends Equipment {
  readonly skillsFolder: string;
  readonly instructionsFile: string;
}

/** A folder in the container, where configurations may name it. */
const PLACED_FOLDER = '/opt/swebatch-equipment';

export interface Placement {
  readonly placed: PlacedEquipment;
  /** Files on the user's own machine are removed; those in a container are gone with it. */
  remove(): Promise<void>;
}

/** Files go in as all files do; nothing of this machine is mounted. Throws what the environment throws. */
export async function placeEquipment(environment: Environment, equipment: Equipment): Promise<Placement> {
  const own = environmentKindOf({ environment_class: environment.info.kind }).onThisMachine
    ? join(tmpdir(), `swebatch-equipment-${randomUUID()}`)
    : null;
  const folder = own ?? PLACED_FOLDER;
  const placed: PlacedEquipment = {
    ...equipment,
    skillsFolder: posix.join(folder, 'skills'),
    instructionsFile: posix.join(folder, 'instructions.md'),
  };
  await environment.putFiles(filesOf(placed));
  return {
    placed,
    remove: async () => {
      if (own !== null) await rm(own, { recursive: true, force: true });
    },
  };
}

function filesOf({ instructions, skills, skillsFolder, instructionsFile }: PlacedEquipment): PlacedFile[] {
  return [
    { path: instructionsFile, content: Buffer.from(instructions ?? ''), mode: 0o644 },
    // A folder is there with its first file.
    ...(skills === null
      ? [{ path: posix.join(skillsFolder, '.none'), content: Buffer.from(''), mode: 0o644 }]
      : []),
    ...(skills ?? []).flatMap((skill) =>
      skill.files.map(({ path, content, executable }) => ({
        path: posix.join(skillsFolder, skill.name, path),
        content,
        mode: executable ? 0o755 : 0o644,
      })),
    ),
  ];
}

/** A paragraph below the task, for an agent that reads no files of its own accord; '' where there is nothing. */
export function equipmentText(equipment: PlacedEquipment | undefined): string {
  if (!equipment) return '';
  const { instructions, skills, skillsFolder } = equipment;
  const listed = (skills ?? []).map(
    ({ name, description }) => `- ${name}: ${description} (${posix.join(skillsFolder, name, 'SKILL.md')})`,
  );
  return [
    ...(instructions === null ? [] : [`\n\n<instructions>\n${instructions.trim()}\n</instructions>`]),
    ...(listed.length === 0
      ? []
      : [
          `\n\n<skills>\nBefore you do what a skill is for, read its file with a command.\n${listed.join('\n')}\n</skills>`,
        ]),
  ].join('');
}

const NAMES = { skills: /\{\{\s{0,9}skills\b/, instructions: /\{\{\s{0,9}instructions\b/ } as const;

/** Whether the line names the place of what its arm gives. */
export const namesEquipment = (command: string | undefined, what: keyof typeof NAMES): boolean =>
  NAMES[what].test(command ?? '');
