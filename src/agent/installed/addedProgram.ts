/** Programs that users add themselves, and what they need beside them. */
import { PROGRAM_FOLDER } from '../../environment/programs/program.ts';
import type { PackageArchitecture, WantedPackage } from '../contract.ts';

/** The folder of a program that its user added, below PROGRAM_FOLDER. */
export const ADDED_FOLDER = 'program';

/** The program's commands: on the PATH of the agent, and of nobody else. */
export const ADDED_BIN = `${PROGRAM_FOLDER}/${ADDED_FOLDER}/bin`;

/** JavaScript gets this Node beside it, because the image's may be too old or absent. */
export const nodePackage = (arch: PackageArchitecture): WantedPackage => ({
  ...{ name: `node-linux-${arch}`, version: '22.23.3', folder: 'node', licence: 'MIT' },
});

export const NODE = `${PROGRAM_FOLDER}/node/bin/node`;
