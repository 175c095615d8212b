/**
 * A file that says which engines a run has, written by a Slurm job, an autoscaler or a person while the run works. Engines that appear in it
 * join, engines that vanish from it are drained. What is wrong in it is a warning and never stops the run.
 */
import { errorText } from '../../../base/text/errorText.ts';
import { type EngineSpec, engineLine, readEngineList } from './engineSpec.ts';

export interface FileEnginesPorts {
  /** Rejects where there is no such file. */
  readonly read: () => Promise<string>;
  /** As warnings name it. */
  readonly path: string;
  /** Rejects with why the engine does not join; it is tried again. */
  readonly join: (engine: EngineSpec) => Promise<void>;
  readonly drain: (host: string) => void;
  readonly warn: (text: string) => void;
}

export interface FileEngines {
  /** Reads the file once, and does what has changed. Never rejects. */
  look(): Promise<void>;
}

interface Kept {
  /** The text of the last look. */
  last: string | undefined;
  /** What was carried out. */
  applied: string | undefined;
  /** By name, as lines. */
  readonly wanted: Map<string, EngineSpec>;
  readonly joined: Map<string, string>;
  /** Each is said once. */
  readonly said: Set<string>;
}

/** A file that grows without end is not read into memory. */
const LONGEST = 1_000_000;

export function createFileEngines(ports: FileEnginesPorts): FileEngines {
  const kept: Kept = {
    ...{ last: undefined, applied: undefined },
    ...{ wanted: new Map(), joined: new Map(), said: new Set() },
  };
  return {
    async look() {
      const text = await textOf(ports, kept);
      if (text !== undefined) takeOver(ports, kept, text);
      await joinMissing(ports, kept);
    },
  };
}

function warnOnce({ warn, path }: FileEnginesPorts, { said }: Kept, text: string): void {
  if (said.has(text)) return;
  said.add(text);
  warn(`${path}: ${text}`);
}

/** Undefined while nothing is to be done. Somebody may be writing: a text counts when two looks in turn have seen it. */
async function textOf(ports: FileEnginesPorts, kept: Kept): Promise<string | undefined> {
  let text: string;
  try {
    text = await ports.read();
  } catch (error) {
    // It may be put in place by its writer at this moment, so that nothing leaves because of it.
    warnOnce(ports, kept, `it cannot be read, and the engines stay as they are: ${errorText(error)}`);
    return undefined;
  }
  if (text.length > LONGEST) {
    warnOnce(ports, kept, 'it is longer than a list of engines; the engines stay as they are');
    return undefined;
  }
  const settled = kept.applied === undefined || text === kept.last;
  kept.last = text;
  return settled && text !== kept.applied ? text : undefined;
}

function takeOver(ports: FileEnginesPorts, kept: Kept, text: string): void {
  kept.applied = text;
  kept.said.clear();
  const list = readEngineList(text);
  if (list === null) {
    warnOnce(ports, kept, 'it is no list that can be read; the engines stay as they are');
    return;
  }
  for (const problem of list.problems) warnOnce(ports, kept, `${problem}; the other entries hold`);
  const now = new Map(list.engines.map((engine) => [engine.host, engine]));
  for (const host of kept.wanted.keys()) {
    if (now.has(host)) continue;
    if (kept.joined.delete(host)) ports.drain(host);
  }
  kept.wanted.clear();
  for (const [host, engine] of now) kept.wanted.set(host, engine);
}

/** All at once: one that does not answer must not keep the others waiting. */
async function joinMissing(ports: FileEnginesPorts, kept: Kept): Promise<void> {
  const missing = [...kept.wanted.values()].filter((one) => kept.joined.get(one.host) !== engineLine(one));
  await Promise.all(
    missing.map(async (engine) => {
      try {
        await ports.join(engine);
        kept.joined.set(engine.host, engineLine(engine));
      } catch (error) {
        warnOnce(ports, kept, `${engine.host} does not join yet: ${errorText(error)}`);
      }
    }),
  );
}
