/** A run as the writers of other tools' formats take it, and the files that they make of it. */
import type { AtifSource } from './atif/writeAtif.ts';

/** A trial that was worked on: its last attempt, and what all its attempts used. */
export interface WrittenTrial {
  readonly attempt: AtifSource;
  readonly patch: string;
  readonly repo: string;
  /** Null where nobody can say what the model would have done: it is missing, and no failure. */
  readonly verdict: { readonly resolved: boolean; readonly reward: number | null } | null;
  /** The reason of a missing verdict; null where the trial has one. */
  readonly missing: string | null;
  /** The usage of all its attempts, by the model that answered. */
  readonly usage: ReadonlyMap<string, WrittenUsage>;
}

export interface WrittenUsage {
  readonly calls: number;
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
  /** Null where that of one call is not known. */
  readonly costNano: number | null;
}

export function sumOfUsage(all: readonly WrittenUsage[]): WrittenUsage {
  const sum = (key: Exclude<keyof WrittenUsage, 'costNano'>) =>
    all.reduce((total, one) => total + one[key], 0);
  return {
    ...{
      calls: sum('calls'),
      input: sum('input'),
      cacheRead: sum('cacheRead'),
      cacheWrite: sum('cacheWrite'),
    },
    ...{ output: sum('output'), reasoning: sum('reasoning') },
    costNano: all.reduce<number | null>(
      (total, { costNano }) => (total === null || costNano === null ? null : total + costNano),
      0,
    ),
  };
}

export interface WrittenArm {
  readonly name: string;
  readonly model: string;
  readonly agent: string;
  /** The mean of valid trials, epochs of an instance averaged, with the number of instances; null where nothing is graded. */
  readonly score: { readonly mean: number; readonly n: number } | null;
  /** One at a time, in the order of the run: bodies are large. */
  readonly trials: () => Iterable<WrittenTrial>;
}

/** The rows of the run, in its folder and in folders of other tools, whose readers leave a file of another name alone. */
export const RECORD_FILE = 'record.jsonl.gz';
/** Likewise in a log of Inspect, whose readers open entries by name. */
export const RECORD_IN_LOG = `swebatch/${RECORD_FILE}`;

export interface WrittenRun {
  readonly name: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  /** The version of this program. */
  readonly version: string;
  readonly dataset: {
    readonly source: string;
    /** On the Hugging Face Hub; null where it has no name there. */
    readonly repo: string | null;
    readonly revision: string | null;
    readonly hash: string;
  };
  readonly ids: readonly string[];
  readonly epochs: number;
  readonly arms: readonly WrittenArm[];
  /** The rows of the run or of an arm, for ourselves: what the other tool's form cannot say. */
  readonly record: (arm?: string) => Uint8Array;
}

export interface WrittenFile {
  /** The path below the folder that is written into. */
  readonly path: string;
  readonly content: string | Uint8Array;
}

export type RunWriter = (run: WrittenRun) => Iterable<WrittenFile>;

/** One attempt as a document in JSON. */
export type AttemptWriter = (attempt: AtifSource, version: string) => Readonly<Record<string, unknown>>;
