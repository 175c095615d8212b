/**
 * The book of a machine's images, which this file alone reads and writes; the processes of all results roots share it.
 *
 *   images.jsonl      a line for each image that was pulled, used or removed, with its engine: only added to
 *   needed/PROCESS    the images that a living process still needs: replaced as a whole, removed once the process is dead
 *
 * Docker cannot label an image after the fact, so this book stands beside it. An image that is not in images.jsonl is never removed.
 */

import { appendFile, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { isTemporary, writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { imageKey } from '../../base/imageReference.ts';
import type { Owner } from '../environment.ts';
import { currentOwner, isOwnerAlive, LABELS, type Liveness } from '../owner.ts';

const lineSchema = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('pulled'),
    engine: z.string(),
    image: z.string(),
    id: z.string(),
    bytes: z.number(),
    digest: z.string().optional(),
    at: z.number(),
  }),
  z.object({ event: z.literal('used'), engine: z.string(), image: z.string(), at: z.number() }),
  z.object({ event: z.literal('removed'), engine: z.string(), image: z.string(), at: z.number() }),
]);

type AnyLine = z.infer<typeof lineSchema>;
type Line<Event extends AnyLine['event']> = Extract<AnyLine, { event: Event }>;

export interface OwnImage {
  readonly image: string;
  /** The id at the time of the pull; a name that points elsewhere today is no longer ours. */
  readonly id: string;
  readonly bytes: number;
  /** As the registry gave it. */
  readonly digest?: string | undefined;
  readonly pulledAt: number;
  readonly usedAt: number;
}

export type ImageBook = ReturnType<typeof openImageBook>;

interface BookProcess {
  /** Name of the file with what this process needs. */
  readonly name: string;
  /** Whether the process lives that such a file names. */
  readonly liveness: (name: string) => Liveness;
}

/** Machines may share a home directory and an engine: a pid alone says nothing of another machine's process. */
const NAME = /^(\d+)-(\d+)-([\w-]+)@(.+)$/;
const nameOf = ({ pid, pidStart, bootId, host }: Owner) =>
  `${pid}-${pidStart || '0'}-${bootId || 'none'}@${host.replaceAll('/', '_')}`;

function ownProcess(): BookProcess {
  return {
    name: nameOf(currentOwner('', '')),
    liveness(name) {
      const [, pid, start, boot, host] = NAME.exec(name) ?? [];
      if (pid === undefined) return 'unknown';
      return isOwnerAlive({
        [LABELS.pid]: pid,
        [LABELS.pidStart]: start!,
        [LABELS.bootId]: boot!,
        [LABELS.host]: host!,
      });
    },
  };
}

/**
 * A process of another machine that has been silent for so long no longer needs its images (observed:
 * tests/environment/places/images/pure.test.ts).
 */
const UNHEARD_MS = 7 * 24 * 3600 * 1000;

export function openImageBook(stateDir: string, self: BookProcess = ownProcess()) {
  const path = join(stateDir, 'images.jsonl');
  const needDir = join(stateDir, 'needed');
  const append = async (line: AnyLine) => {
    makeFolder(stateDir);
    // One write below the size of a pipe buffer with O_APPEND: lines of several processes do not mix.
    await appendFile(path, `${JSON.stringify(line)}\n`);
  };
  const whenMissing =
    <T>(value: T) =>
    (error: unknown): T => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return value;
      throw error;
    };
  return {
    pulled: (fact: Omit<Line<'pulled'>, 'event'>) => append({ event: 'pulled', ...fact }),
    used: (fact: Omit<Line<'used'>, 'event'>) => append({ event: 'used', ...fact }),
    removed: (fact: Omit<Line<'removed'>, 'event'>) => append({ event: 'removed', ...fact }),
    async own(engine: string): Promise<OwnImage[]> {
      const own = new Map<string, OwnImage>();
      for (const text of (await readFile(path, 'utf8').catch(whenMissing(''))).split('\n')) {
        const line = readLine(text);
        if (line?.engine !== engine) continue;
        const key = imageKey(line.image);
        const known = own.get(key);
        if (line.event === 'removed') own.delete(key);
        else if (line.event === 'pulled') {
          const { event: _, engine: __, at, ...fact } = line;
          own.set(key, { ...fact, pulledAt: at, usedAt: at });
        } else if (known) own.set(key, { ...known, usedAt: Math.max(known.usedAt, line.at) });
      }
      return [...own.values()];
    },
    /** Says that this process still needs these images; replaces what it said before. */
    async need(images: readonly string[]): Promise<void> {
      const mine = join(needDir, self.name);
      if (images.length === 0) return rm(mine, { force: true });
      // A file that is half written would look like images that nobody needs (observed: tests/environment/places/images/pure.test.ts).
      await writeAtomically(mine, images.join('\n'));
    },
    /** Images that some living process needs. */
    async needed(): Promise<ReadonlySet<string>> {
      const needed = new Set<string>();
      const names = await readdir(needDir).catch(whenMissing<string[]>([]));
      for (const name of names.filter((each) => !isTemporary(each))) {
        const file = join(needDir, name);
        const liveness = self.liveness(name);
        const age = Date.now() - ((await stat(file).catch(whenMissing(undefined)))?.mtimeMs ?? 0);
        if (liveness === 'dead' || (liveness === 'unknown' && age > UNHEARD_MS))
          await rm(file, { force: true });
        else
          for (const image of (await readFile(file, 'utf8').catch(whenMissing(''))).split('\n'))
            if (image) needed.add(image);
      }
      return needed;
    },
  };
}

/** A line that kill -9 cut is skipped: at worst an image is kept that could go (pure.test.ts). */
function readLine(text: string): AnyLine | undefined {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
