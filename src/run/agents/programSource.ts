/** The sources of `agents add` beside the agents that it knows: a package of npm or PyPI in one version, a folder, or a tar file. */
import { basename } from 'node:path';
import { AGENT_NAMES } from '../../agent/agents.ts';
import { UserError } from '../userError.ts';

export type ProgramSource =
  | { readonly kind: 'npm' | 'pypi'; readonly name: string; readonly version: string }
  | { readonly kind: 'folder' | 'tar'; readonly path: string };

const NPM =
  /^((?:@[a-z0-9][a-z0-9._~-]*\/)?[a-z0-9][a-z0-9._~-]*)@(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]{1,60})?)$/;
const PYPI = /^([A-Za-z0-9][A-Za-z0-9._-]{0,100})==([0-9][0-9A-Za-z.+-]{0,60})$/;
const TAR = /\.(?:tar|tgz|tar\.gz)$/;
/** A program's name is part of files, volumes and configurations. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,39}$/;

/** undefined: the text reads as no source; perhaps it is an agent that is known. Throws UserError where it almost is a source. */
export function programSource(text: string): ProgramSource | undefined {
  const [, registry, wanted = ''] = /^(npm|pypi):(.*)$/s.exec(text) ?? [];
  if (registry === 'npm' || registry === 'pypi') {
    const [, name, version] = (registry === 'npm' ? NPM : PYPI).exec(wanted) ?? [];
    if (name !== undefined && version !== undefined) return { kind: registry, name, version };
    throw new UserError(`"${text}" names no package with one version`, {
      hint: registry === 'npm' ? 'write npm:NAME@1.2.3' : 'write pypi:NAME==1.2.3',
    });
  }
  if (TAR.test(text)) return { kind: 'tar', path: text };
  return text.includes('/') && !text.includes('@') ? { kind: 'folder', path: text } : undefined;
}

/** Throws UserError for a name that no program can have. */
export function checkProgramName(name: string): string {
  if (!NAME.test(name))
    throw new UserError(`"${name}" cannot be the name of a program`, {
      hint: 'small letters, digits, dots, hyphens and underscores, at most 40',
    });
  if (AGENT_NAMES.includes(name))
    throw new UserError(`"${name}" is the name of an agent that swebatch knows`, {
      hint: 'take another name',
    });
  return name;
}

/** The default name of a folder or tar file. */
export const nameOfPath = (path: string): string => basename(path).replace(TAR, '').toLowerCase();
