/** Results of other tools as plain data: what our runs record, as far as the files contain it. */
import type { RecordedCall } from '../../formats/trajectories/recordedCalls.ts';
import type { ExitReason } from '../../outcome.ts';

/** The model when neither prediction nor trajectory names one. */
export const UNKNOWN_MODEL = 'unknown';

/** Where a trial stands in the run that is made of it. */
export interface TrialPlace {
  readonly instanceId: string;
  /** Which of several trials of the instance; the first where there is one. */
  readonly epoch?: number;
  /** Where the source has several agents or models. */
  readonly arm?: string;
}

/** Ids hold no spaces. */
export const placeKey = ({ instanceId, epoch = 1, arm }: TrialPlace): string =>
  epoch === 1 && arm === undefined ? instanceId : `${instanceId} ${epoch} ${arm ?? ''}`;

export interface ImportedInstance extends TrialPlace {
  readonly model: string;
  readonly format: string;
  readonly version: string | null;
  readonly exitStatus: string | null;
  readonly exitReason: ExitReason;
  readonly errorMessage: string | null;
  readonly submission: string | null;
  /** Null where it is not known: a report alone holds verdicts and no patch. */
  readonly modelPatch: string | null;
  /** The patch where it is not UTF-8: `modelPatch` then has other characters in the place of wrong bytes. */
  readonly patchBytes?: Uint8Array;
  readonly steps: number;
  readonly costNano: number | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly calls: readonly RecordedCall[];
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Null when only a prediction was there: without a patch the environment never started, for then mini-swe-agent writes no trajectory. */
  readonly file: string | null;
  /** Impossible values of the file, which are treated as unknown. */
  readonly notes?: readonly string[];
}

export interface ImportedRun {
  readonly folder: string;
  readonly instances: readonly ImportedInstance[];
  /** Trials that the source meant to run and has nothing of: they are missing. */
  readonly neverRun?: readonly TrialPlace[];
  readonly warnings: readonly string[];
  /** Unreadable parts that would be lost, with file, line and id; nothing is imported until they are fixed. */
  readonly problems: readonly string[];
}
