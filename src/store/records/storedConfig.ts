/**
 * The recorded settings of a run and its arms, unchecked. An import or a set of predictions may lack sections or keys;
 * the schema of a section gives the defaults.
 */
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { StorageError } from '../open.ts';
import { storedJson } from '../storedJson.ts';
import type { ArmRow, RunRow } from './runs.ts';

/** Settings under their names in a configuration file. */
export type Section = Readonly<Record<string, unknown>>;

export interface StoredArm {
  readonly agent?: Section;
  readonly environment?: Section;
  readonly model?: Section;
  readonly gateway?: Section;
}

export interface StoredConfig {
  readonly run?: Section;
  readonly grading?: Section;
  readonly images?: Section;
  readonly dataset?: Section;
  readonly arms?: readonly (StoredArm & { readonly name: string })[];
}

/** run.json at the start of the run: program, machine, templates and so on. For an import, what its files contain. */
export interface StoredManifest {
  readonly program?: Section;
  readonly machine?: Section;
  /** The engine that the containers ran in; null where none answered. */
  readonly docker?: Section | null;
  readonly dataset?: Section;
  readonly selection?: Section;
  readonly statistics?: Section;
  readonly grading?: Section;
  readonly split?: unknown;
  /** Digest of each image at the start; null where it was not there yet. */
  readonly images?: Readonly<Record<string, string | null>>;
  /** By arm. */
  readonly templates?: Section;
  /** By arm. */
  readonly models?: Section;
  readonly [more: string]: unknown;
}

/** For reading: settings that cannot be read are left out. */
export const storedConfig = (run: Pick<RunRow, 'config'>): StoredConfig => objectIn(run.config);

export const storedArm = (arm: Pick<ArmRow, 'config'>): StoredArm => objectIn(arm.config);

export const storedManifest = (run: Pick<RunRow, 'manifest'>): StoredManifest => objectIn(run.manifest);

/** For work by these settings (resume, grading, an exported configuration), which must not go on with the defaults instead. */
export const wholeConfig = (run: Pick<RunRow, 'config'>): StoredConfig => wholeIn(run.config, 'run');

export const wholeArm = (arm: Pick<ArmRow, 'config'>): StoredArm => wholeIn(arm.config, 'arm');

const objectIn = (text: string): Section => recordOf(storedJson(text));

function wholeIn(text: string, what: string): Section {
  const value = storedJson(text);
  if (isRecord(value)) return value;
  throw new StorageError(
    'corrupt',
    `the stored configuration of the ${what} cannot be read; nothing was started. Take the database from its newest backup`,
  );
}
