/** Which packages make an installed agent, by name and version. They are its makers' own: users fetch them, and nothing of them is passed on. */
import type { Libc } from '../../environment/programs/program.ts';

/** Agents that can be added; `command` needs no package. */
export const ADDABLE = ['codex', 'claude-code', 'opencode', 'gemini-cli'] as const;
export type AddableAgent = (typeof ADDABLE)[number];

/** A package and the folder of the program that its files go to. */
export interface WantedPackage {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
  /** Where the registry names none; default: the agent's. */
  readonly licence?: string;
}

export interface WantedVariant {
  readonly libc: Libc | null;
  readonly packages: readonly WantedPackage[];
}

export interface AgentPackages {
  /** Of the program, where a package does not say it. */
  readonly licence: string;
  readonly variants: readonly WantedVariant[];
}

/** As Node and npm call an architecture. */
export type PackageArchitecture = 'x64' | 'arm64';

/** Gemini CLI is JavaScript: it gets this Node beside it, because the image's may be too old or absent. */
const NODE_VERSION = '22.23.3';

type Packages = (version: string, arch: PackageArchitecture) => AgentPackages;

const one = (libc: Libc | null, ...packages: readonly WantedPackage[]): WantedVariant => ({ libc, packages });

const PACKAGES: Readonly<Record<AddableAgent, Packages>> = {
  codex: (version, arch) => ({
    licence: 'Apache-2.0',
    variants: [one(null, { name: '@openai/codex', version: `${version}-linux-${arch}`, folder: 'codex' })],
  }),
  'claude-code': (version, arch) => {
    const name = `@anthropic-ai/claude-code-linux-${arch}`;
    return {
      licence: "Anthropic's commercial terms",
      variants: [
        one('glibc', { name, version, folder: 'claude' }),
        one('musl', { name: `${name}-musl`, version, folder: 'claude' }),
      ],
    };
  },
  opencode: (version, arch) => {
    const name = `opencode-linux-${arch}`;
    return {
      licence: 'MIT',
      variants: [
        one('glibc', { name, version, folder: 'opencode' }),
        one('musl', { name: `${name}-musl`, version, folder: 'opencode' }),
      ],
    };
  },
  'gemini-cli': (version, arch) => ({
    licence: 'Apache-2.0',
    variants: [
      one(
        'glibc',
        { name: '@google/gemini-cli', version, folder: 'gemini' },
        { name: `node-linux-${arch}`, version: NODE_VERSION, folder: 'node', licence: 'MIT' },
      ),
    ],
  }),
};

export interface AgentSpec {
  readonly agent: AddableAgent;
  /** Undefined: the one that was added. */
  readonly version: string | undefined;
}

export const isAddable = (name: string): name is AddableAgent =>
  (ADDABLE as readonly string[]).includes(name);

/** `codex` or `codex@0.169.0`; null for everything else. */
export function parseAgentSpec(text: string): AgentSpec | null {
  const at = text.indexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  if (!isAddable(name)) return null;
  if (at < 0) return { agent: name, version: undefined };
  const version = text.slice(at + 1);
  return /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]{1,40})?$/.test(version) ? { agent: name, version } : null;
}

export const packagesOf = (agent: AddableAgent, version: string, arch: PackageArchitecture): AgentPackages =>
  PACKAGES[agent](version, arch);
