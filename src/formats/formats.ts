/**
 * Formats of other tools that are read as runs: one folder each, and one line here. The rest of the program asks this table and names no
 * format. A format is loaded when a path of another tool is first looked at.
 */
import { listingOf, SourceError } from './foreignFile.ts';
import type { Claim, ForeignFormat, ForeignRun, Listing } from './foreignFormat.ts';
import type { RunWriter } from './writtenRun.ts';

const TABLE: readonly (() => Promise<ForeignFormat>)[] = [
  async () => (await import('./harbor/harbor.ts')).harbor,
  async () => (await import('./miniSweAgent/miniSweAgent.ts')).miniSweAgent,
  async () => (await import('./atif/atif.ts')).atif,
  async () => (await import('./inspect/inspect.ts')).inspect,
  async () => (await import('./harness/harness.ts')).harness,
  async () => (await import('./leaderboard/leaderboard.ts')).leaderboard,
  async () => (await import('./pro/pro.ts')).pro,
];

/** Formats that a run can be written in, by the word of `export`. */
const WRITERS: Readonly<Record<string, () => Promise<RunWriter>>> = {
  inspect: async () => (await import('./inspect/writeInspect.ts')).writeInspect,
  harbor: async () => (await import('./harbor/writeHarbor.ts')).writeHarbor,
  hf: async () => (await import('./hubScores/hubScores.ts')).writeEvalResults,
};

export const WRITTEN_FORMATS: readonly string[] = Object.keys(WRITERS);

export const writerOf = (format: string): Promise<RunWriter> => WRITERS[format]!();

export interface Recognised extends Claim {
  /** Null for a results root of ours. */
  readonly format: ForeignFormat | null;
}

/** What a path is; null where nothing is there, or nothing that is known. */
export async function recogniseSource(source: string): Promise<Recognised | null> {
  const listing = listingOf(source);
  return listing && recognised(listing, await allFormats());
}

export const allFormats = (): Promise<readonly ForeignFormat[]> => Promise.all(TABLE.map((load) => load()));

/** Told from names and the beginnings of a few files. */
export function recognised(listing: Listing, formats: readonly ForeignFormat[]): Recognised | null {
  if (listing.files?.includes('swebatch.db'))
    return { words: 'a results root of swebatch', certain: 'sure', verdictsAlone: true, format: null };
  const claims = formats.flatMap((format) => {
    const claim = format.recognise(listing);
    return claim ? [{ ...claim, format }] : [];
  });
  for (const certain of ['sure', 'likely', 'possible'] as const) {
    const surest = claims.find((claim) => claim.certain === certain);
    if (surest) return surest;
  }
  return null;
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
