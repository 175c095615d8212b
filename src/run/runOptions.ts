/** The options of `startRun` and `planRun`. */
import type { DatasetConfig } from '../config/datasetConfig.ts';

export interface RunOptions {
  /** Results root; made when it is not there. */
  readonly results: string;
  /** Name of the run: that of an earlier one goes on with it. Default: a new one from the time. */
  readonly name?: string | undefined;
  /** Which rows: over the configuration's `dataset:` section. */
  readonly dataset?: DatasetConfig | undefined;
  /** Folder with local copies of the named datasets. */
  readonly dataDir?: string | undefined;
  /** Only instances that this run of the results root did not resolve. */
  readonly failedIn?: string | undefined;
  /** Model ids, `scripted:PATH` or `replay:RUN[/ARM]`; several make arms. */
  readonly models?: readonly string[] | undefined;
  /** Configuration files and `key.path=value`, left to right. */
  readonly config?: readonly string[] | undefined;
  /** Sections as in a configuration file, over all of `config`. */
  readonly settings?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
  /** Go on with a changed configuration; recorded as a boundary. */
  readonly allowConfigChange?: boolean | undefined;
  /** Run sealed trials once more; all attempts are kept. */
  readonly redoExisting?: boolean | undefined;
}
