// The image of the Dockerfile, built from what npm would publish and the packages that are installed here.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BASE_IMAGE } from '../../../src/demo/baseImage.ts';
import { REPO } from '../cli.ts';
import { installPacked } from './installPacked.ts';

export const docker = (...args: string[]) => spawnSync('docker', args, { encoding: 'utf8' });

function built(tag: string, folder: string, ...more: string[]): void {
  const made = docker('build', '-q', '-t', tag, ...more, folder);
  if (made.status !== 0) throw new Error(made.stderr);
}

export interface ProgramImage {
  /** A folder of its own. */
  readonly work: string;
  readonly name: string;
  /** The image below it: the base of the demo with this Node. */
  readonly node: string;
  /** Packages beside those of the program, with all that they need. */
  readonly beside?: readonly string[];
}

/** No registry can be reached from within a build here, so packages are in the context. */
export function buildProgramImage({ work, name, node, beside }: ProgramImage): void {
  const below = join(work, 'node');
  mkdirSync(below, { recursive: true });
  cpSync(join(REPO, 'node_modules/node/bin/node'), join(below, 'node'));
  writeFileSync(join(below, 'Dockerfile'), `FROM ${BASE_IMAGE}\nCOPY node /usr/local/bin/node\n`);
  built(node, below);
  const context = join(work, 'context');
  installPacked({ work, into: context, root: context, beside });
  built(name, context, '-f', join(REPO, 'Dockerfile'), '--build-arg', `BASE=${node}`);
}
