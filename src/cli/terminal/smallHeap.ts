/** The memory of a process with many slots stays near what they use. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const GROWN_BYTES = 32 * 2 ** 20;
const LOOK_MS = 10_000;

/**
 * V8 lets garbage pile up to a multiple of what is used, and it keeps the pages that it has emptied: at 512 slots that was 130 MB of 300
 * (`npm run bench:slots`). Only a collection of last resort gives them back. One takes 0.2 s, so it comes when memory has grown, and
 * at most every ten seconds. Returns what ends it.
 */
export function keepHeapSmall(): () => void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=15');
  const collect = collector();
  const look = whenGrown(process.memoryUsage.rss, () =>
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
  );
  const looking = setInterval(look, LOOK_MS);
  looking.unref();
  return () => clearInterval(looking);
}

/** A context that is made while the flag is set has the function. */
function collector(): (how: Readonly<Record<'type' | 'execution' | 'flavor', string>>) => void {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return gc as ReturnType<typeof collector>;
}

/** Collects once `bytes` is 32 MiB above what it was after the last time. */
export function whenGrown(bytes: () => number, collect: () => void): () => void {
  let after = bytes();
  return () => {
    if (bytes() < after + GROWN_BYTES) return;
    collect();
    after = bytes();
  };
}
