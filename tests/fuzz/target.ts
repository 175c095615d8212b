import fc from 'fast-check';

export interface Target {
  readonly name: string;
  /** fast-check calls it with more and more cases until the time of the target is up. */
  readonly property: fc.IRawProperty<unknown>;
}

export const target = (
  name: string,
  property: fc.IRawProperty<never> | fc.IRawProperty<unknown>,
): Target => ({
  name,
  property: property as fc.IRawProperty<unknown>,
});

/** A new seed for every run, unless one is to be run again. */
export const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
export const SECONDS = Number(process.env.FUZZ_SECONDS ?? 60);
const PATH = process.env.FUZZ_PATH;

/** Cases that were tried. Throws fast-check's report of the smallest case that fails, with what runs it again. */
export async function run({ name, property }: Target, ms: number): Promise<number> {
  const details = await fc.check(property, {
    seed: SEED,
    ...(PATH ? { path: PATH, numRuns: 1 } : { numRuns: 10_000_000, interruptAfterTimeLimit: ms }),
    markInterruptAsFailure: false,
  });
  if (!details.failed) return details.numRuns;
  const again = `FUZZ_SEED=${details.seed} FUZZ_PATH=${details.counterexamplePath} FUZZ_ONLY='${name}' npm run fuzz`;
  const why = details.errorInstance instanceof Error ? details.errorInstance.message : '';
  throw new Error(`${name} fails; again: ${again}\n${why}\n${fc.defaultReportMessage(details)}`);
}
