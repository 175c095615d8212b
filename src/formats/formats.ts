/**
 * Formats of other tools that are read as runs: one folder each, and one line here. The rest of the program asks this table and names no
 * format. A format is loaded when a path of another tool is first looked at.
 */
import { dirname, join } from 'node:path';
import { listingOf, readForeignBytes } from './foreignFile.ts';
import type { CarriedRecord, Claim, ForeignFormat, ForeignRun, Listing } from './foreignFormat.ts';
import { SourceError } from './sourceError.ts';
import { type AttemptWriter, RECORD_FILE, type RunWriter } from './writtenRun.ts';

interface Row {
  /** The path that a user may name, as texts of help say it; null where it is told and makes no run. */
  readonly reads: string | null;
  /** The sign it is known by, told for a path of no known kind. */
  readonly by: string;
  /** Names of files that are of this kind, or look like it. */
  readonly near: RegExp;
  readonly load: () => Promise<ForeignFormat>;
}

const TABLE: readonly Row[] = [
  {
    reads: 'a job folder of Harbor',
    by: 'its result.json has "n_total_trials"',
    near: /^result\.json$/,
    load: async () => (await import('./harbor/harbor.ts')).harbor,
  },
  {
    reads: "mini-swe-agent's folder (preds.json, *.traj.json)",
    by: 'it has files *.traj.json',
    near: /\.traj\.json/,
    load: async () => (await import('./miniSweAgent/miniSweAgent.ts')).miniSweAgent,
  },
  {
    reads: "SWE-agent's trajectories (*.traj) or a folder of them",
    by: 'it is, or has, a file *.traj',
    near: /\.traj$/,
    load: async () => (await import('./sweTraj/sweTraj.ts')).sweTraj,
  },
  {
    reads: "OpenHands' output.jsonl",
    by: 'its lines have "instance_id" and "test_result"',
    near: /^output\b/,
    load: async () => (await import('./openHandsOutput/openHandsOutput.ts')).openHandsOutput,
  },
  {
    reads: 'a run folder of Terminal-Bench 1',
    by: 'its results.json has "results", each with "trial_name" and "task_id"',
    near: /^(?:run_metadata\.json|tb\.lock)$/,
    load: async () => (await import('./terminalBench/terminalBench.ts')).terminalBench,
  },
  {
    reads: 'trajectories in ATIF',
    by: '"schema_version" begins with "ATIF-v"',
    near: /^trajectory\.json$|atif/,
    load: async () => (await import('./atif/atif.ts')).atif,
  },
  {
    reads: 'a log of Inspect (.eval, .json) or a folder of them',
    by: 'it ends in .eval, or has "eval" with "task" and "model"',
    near: /\.eval$|^\d{4}-\d\d-\d\dT/,
    load: async () => (await import('./inspect/inspect.ts')).inspect,
  },
  {
    reads: "results.json of a leaderboard's entry",
    by: 'it has a list "resolved"',
    near: /^results\.json$|^metadata\.ya?ml$/,
    load: async () => (await import('./leaderboard/leaderboard.ts')).leaderboard,
  },
  {
    reads: 'eval_results.json of SWE-bench Pro',
    by: 'it maps ids to true or false',
    near: /^eval_results/,
    load: async () => (await import('./pro/pro.ts')).pro,
  },
  {
    reads:
      "predictions, the harness's logs/run_evaluation folder or a report.json in it, a run report of the harness or of sb-cli",
    by: 'they have "model_patch", "resolved_ids" or "resolved"',
    near: /preds|predictions|report|\.jsonl$|^patch\.diff$/,
    load: async () => (await import('./harness/harness.ts')).harness,
  },
  {
    reads: null,
    by: 'a list of "dataset" and "value" in .eval_results/*.yaml',
    near: /\.eval_results/,
    load: async () => (await import('./hubScores/hubScores.ts')).hubScores,
  },
];

export const READ_FORMATS: readonly string[] = TABLE.flatMap(({ reads }) => reads ?? []);

interface Writer<T> {
  /** The written files, as texts of help say it. */
  readonly writes: string;
  readonly load: () => Promise<T>;
}

/** Formats that a run can be written in, by the word of `export`. */
const WRITERS: Readonly<Record<string, Writer<RunWriter>>> = {
  inspect: {
    writes: 'logs (.eval) for inspect view and inspect log',
    load: async () => (await import('./inspect/writeInspect.ts')).writeInspect,
  },
  harbor: { writes: 'a job folder', load: async () => (await import('./harbor/writeHarbor.ts')).writeHarbor },
  hf: {
    writes: '.eval_results',
    load: async () => (await import('./hubScores/hubScores.ts')).writeEvalResults,
  },
};

/** Formats that single attempts are written in, likewise; the word is in the names of their files. */
const ATTEMPT_WRITERS: Readonly<Record<string, Writer<AttemptWriter>>> = {
  atif: {
    writes: 'trajectories in the interchange format that harbor reads (ATIF 1.8)',
    load: async () => (await import('./atif/writeAtif.ts')).atifOf,
  },
};

const words = (writers: Readonly<Record<string, Writer<unknown>>>) =>
  Object.entries(writers).map(([word, { writes }]) => ({ word, writes }));

export const WRITTEN_FORMATS = words(WRITERS);
export const WRITTEN_ATTEMPTS = words(ATTEMPT_WRITERS);

export const writerOf = (format: string): Promise<RunWriter> => WRITERS[format]!.load();
/** The trajectory that tests of tasks find of the agent that worked. */
export const interchangeWriter = (): Promise<AttemptWriter> => ATTEMPT_WRITERS.atif!.load();
export const attemptWriterOf = (format: string): Promise<AttemptWriter> => ATTEMPT_WRITERS[format]!.load();

export interface Recognised extends Claim {
  /** Null for a results root of ours. */
  readonly format: ForeignFormat | null;
}

/** A run of ours with all of its rows: an import reads them (results/import/ownRecord.ts), and the format only where it cannot. */
const OWN = {
  words: 'a run of swebatch',
  certain: 'sure',
  format: { recognise: () => null, read: () => null } as ForeignFormat,
} as const;

/** The kind of a path; null where nothing is there, or nothing that is known. */
export async function recogniseSource(source: string): Promise<Recognised | null> {
  const listing = listingOf(source);
  return listing && recognised(listing, await allFormats());
}

/** For a path that is there and nothing that is known: the kind that it is nearest to, by its names, and what that is known by. */
export function whatIsKnown(source: string): string {
  const listing = listingOf(source);
  const names = listing?.files === null ? [listing.name] : (listing?.files ?? []);
  if (names.length === 0) return 'it holds no files';
  for (const { reads, by, near } of TABLE) {
    const name = names.find((file) => near.test(file.split('/').at(-1)!));
    if (reads === null || name === undefined) continue;
    const where =
      listing?.files && name.includes('/') ? `name the folder ${join(source, dirname(name))}; ` : '';
    return `${where}the nearest kind, for its ${name}, is ${reads}: ${by}`;
  }
  const kinds = TABLE.flatMap(({ reads, by }) => (reads === null ? [] : [`  ${reads}: ${by}`]));
  return `name the results root, which is the folder that holds swebatch.db, or what another runner left, which is known by this:\n${kinds.join('\n')}`;
}

export const allFormats = (): Promise<readonly ForeignFormat[]> =>
  Promise.all(TABLE.map(({ load }) => load()));

/** The rows of a run of ours that a path carries; null where there are none, or not of all that is there: then it is read as what it looks like. */
export async function recordsIn(source: string): Promise<readonly CarriedRecord[] | null> {
  const listing = listingOf(source);
  if (!listing) return null;
  const isFile = listing.files === null;
  const path = isFile ? source : join(source, RECORD_FILE);
  if (isFile ? listing.name === RECORD_FILE : listing.files?.includes(RECORD_FILE))
    return [{ path, bytes: readForeignBytes(path) }];
  return (await recognised(listing, await allFormats())?.format?.records?.(source)) ?? null;
}

/** Told from names and the beginnings of a few files. */
export function recognised(listing: Listing, formats: readonly ForeignFormat[]): Recognised | null {
  if (listing.files?.includes('swebatch.db'))
    return { words: 'a results root of swebatch', certain: 'sure', verdictsAlone: true, format: null };
  const claims = formats.flatMap((format) => {
    const claim = format.recognise(listing);
    return claim ? [{ ...claim, format }] : [];
  });
  const surest = (['sure', 'likely', 'possible'] as const)
    .flatMap((certain) => claims.find((claim) => claim.certain === certain) ?? [])
    .at(0);
  if (listing.name === RECORD_FILE && listing.files === null) return { ...OWN, reads: 'itself' };
  return listing.files?.includes(RECORD_FILE)
    ? { ...OWN, format: surest?.format ?? OWN.format }
    : (surest ?? null);
}

/**
 * Reads what another tool left, whatever it is, and finds its verdicts: in `report` when they are not in the source. Throws a SourceError for
 * what cannot be read.
 */
export async function readForeignRun(source: string, report?: string): Promise<ForeignRun> {
  const found = await recogniseSource(source);
  if (found?.format === null)
    throw new SourceError(`${source} is a results root of swebatch`, 'name its runs with -o');
  const run = await found?.format.read(source, report);
  if (run) return run;
  // Trajectories, predictions or reports: files say by themselves what they are.
  const { readPlain } = await import('./harness/harness.ts');
  return readPlain(source, report);
}
