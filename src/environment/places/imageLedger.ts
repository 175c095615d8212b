/**
 * Which images swebatch pulled, per engine, and which a living process still needs. Docker cannot label an image after the fact, so this is
 * kept beside it: an append-only file whose lines several processes may write. Whatever is not in here is never removed.
 */

import { appendFile, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { isTemporary, writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { familiarName, imageKey } from '../../base/imageReference.ts';
import type { Owner } from '../environment.ts';
import { currentOwner, isOwnerAlive, LABELS, type Liveness } from '../owner.ts';
import type { ImageEngine } from './imageEngine.ts';
import { type ImagePolicy, parsePolicy } from './imagesConfig.ts';

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
  /** The id it had when it was pulled; a name that points elsewhere today is no longer ours. */
  readonly id: string;
  readonly bytes: number;
  /** As the registry gave it. */
  readonly digest?: string | undefined;
  readonly pulledAt: number;
  readonly usedAt: number;
}

export type ImageLedger = ReturnType<typeof openImageLedger>;

interface LedgerProcess {
  /** Of the file that says what this process needs. */
  readonly name: string;
  /** Of the process that such a file names. */
  readonly liveness: (name: string) => Liveness;
}

/** Machines may share a home directory and an engine: a pid alone says nothing of another machine's process. */
const NAME = /^(\d+)-(\d+)-([\w-]+)@(.+)$/;
const nameOf = ({ pid, pidStart, bootId, host }: Owner) =>
  `${pid}-${pidStart || '0'}-${bootId || 'none'}@${host.replaceAll('/', '_')}`;

function ownProcess(): LedgerProcess {
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

/** A process of another machine that has been silent for so long no longer needs its images. */
const UNHEARD_MS = 7 * 24 * 3600 * 1000;

/** Version 0.1.0, which may run beside this one, writes `.draft` first. */
const isHalfWritten = (name: string): boolean => isTemporary(name) || name.endsWith('.draft');

export function openImageLedger(path: string, self: LedgerProcess = ownProcess()) {
  const needDir = join(dirname(path), 'needed');
  const append = async (line: AnyLine) => {
    makeFolder(dirname(path));
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
      // A file that is half written would look like images that nobody needs.
      await writeAtomically(mine, images.join('\n'));
    },
    /** What all living processes need. */
    async needed(): Promise<ReadonlySet<string>> {
      const needed = new Set<string>();
      const names = await readdir(needDir).catch(whenMissing<string[]>([]));
      for (const name of names.filter((each) => !isHalfWritten(each))) {
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

/** A line cut by a crash is skipped: at worst an image is kept that could go. */
function readLine(text: string): AnyLine | undefined {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

interface EvictionFacts {
  readonly own: readonly OwnImage[];
  /** Id that each name has on the engine today. */
  readonly idOf: (image: string) => string | undefined;
  /** No queued trial or grading of any living process may lose its image. */
  readonly needed: ReadonlySet<string>;
  /** Images of containers, running or not. */
  readonly inUse: ReadonlySet<string>;
  /** See `CollectOptions`. */
  readonly among?: readonly string[] | undefined;
}

/** Ours, still what we pulled, needed by nobody; least recently used first. */
export function removable({ own, idOf, needed, inUse }: EvictionFacts): OwnImage[] {
  const keys = new Set([...needed].map(imageKey));
  return own
    .filter(({ image, id }) => idOf(image) === id && !keys.has(imageKey(image)) && !inUse.has(id))
    .sort((a, b) => a.usedAt - b.usedAt || (a.image < b.image ? -1 : 1));
}

/**
 * Which images may go, and in which order. Pure: the facts come in, the names come out. `needBytes`: room that must be made on top of the
 * policy, when the disk is low.
 */
export function chooseEvictions(policy: ImagePolicy, facts: EvictionFacts, needBytes = 0): OwnImage[] {
  const candidates = removable(facts);
  // `keep` keeps even when the disk is low: then new starts pause, and a person decides.
  if (policy.kind === 'keep') return [];
  if (policy.kind === 'lru') {
    const held = facts.own
      .filter(({ image, id }) => facts.idOf(image) === id)
      .reduce((sum, i) => sum + i.bytes, 0);
    return oldest(candidates, Math.max(held - policy.bytes, needBytes));
  }
  if (!facts.among) return candidates;
  // What was fetched for other runs is not this run's to remove, unless its disk is full.
  const ours = new Set(facts.among.map(imageKey));
  const [mine, others] = [true, false].map((is) =>
    candidates.filter(({ image }) => ours.has(imageKey(image)) === is),
  ) as [OwnImage[], OwnImage[]];
  return [...mine, ...oldest(others, needBytes - mine.reduce((sum, i) => sum + i.bytes, 0))];
}

/** As few of them, from the front, as make so much room. */
function oldest(candidates: readonly OwnImage[], bytes: number): OwnImage[] {
  const chosen: OwnImage[] = [];
  let freed = 0;
  for (const candidate of candidates) {
    if (freed >= bytes) break;
    chosen.push(candidate);
    freed += candidate.bytes;
  }
  return chosen;
}

export interface Collected {
  readonly removed: readonly OwnImage[];
  readonly kept: readonly { readonly image: string; readonly reason: string }[];
}

export interface CollectOptions {
  readonly engine: ImageEngine;
  readonly ledger: ImageLedger;
  readonly policy: string;
  readonly now: number;
  readonly needBytes?: number;
  readonly dryRun?: boolean;
  /** The images of a run, which `remove-after` removes. Others are removed only to make room; without this list all may be removed. */
  readonly among?: readonly string[] | undefined;
}

/** Carries out an eviction on an engine. */
export async function collectImages(options: CollectOptions): Promise<Collected> {
  const { engine, ledger, now, needBytes = 0, dryRun = false, among } = options;
  const { id: engineId } = await engine.info();
  // The ledger is read before the engine: an image that arrives between the two must not look removed.
  const own = await ledger.own(engineId);
  const [needed, list] = await Promise.all([ledger.needed(), engine.list()]);
  const byName = new Map(list.flatMap((image) => image.tags.map((tag) => [tag, image.id] as const)));
  const ids = new Map<string, string>();
  for (const { image } of own) {
    // Only a name with a digest is not in the list; one question for all the others.
    const id =
      byName.get(familiarName(image)) ??
      (image.includes('@') ? (await engine.inspect(image))?.id : undefined);
    if (id !== undefined) ids.set(image, id);
  }
  // An attempt runs in the sealed copy of its image: both are in use, and space is freed only when both are removed.
  const inUse = new Set(
    list.filter((image) => image.containers > 0).flatMap(({ id, sealedFrom }) => [id, sealedFrom ?? id]),
  );
  const copiesOf = (id: string) => list.filter((image) => image.sealedFrom === id);
  // One image may have several names: what is needed under one is not removed under another.
  const neededKeys = new Set([...needed].map(imageKey));
  for (const { id, tags, digests } of list)
    if ([...tags, ...digests].some((name) => neededKeys.has(imageKey(name)))) inUse.add(id);
  const facts = { own, needed, inUse, idOf: (image: string) => ids.get(image), among };
  const chosen = chooseEvictions(parsePolicy(options.policy), facts, needBytes);
  if (dryRun) return { removed: chosen, kept: [] };
  const removed: OwnImage[] = [];
  const kept: { image: string; reason: string }[] = [];
  for (const image of chosen) {
    for (const copy of copiesOf(image.id)) await engine.remove(copy.tags[0] ?? copy.id);
    const result = await engine.remove(image.image);
    if (result.removed) {
      removed.push(image);
      await ledger.removed({ engine: engineId, image: image.image, at: now });
    } else kept.push({ image: image.image, reason: result.reason ?? 'the engine keeps it' });
  }
  // Names that somebody else removed, or that now point to another image, are no longer ours.
  for (const { image, id } of own)
    if (ids.get(image) !== id) await ledger.removed({ engine: engineId, image, at: now });
  return { removed, kept };
}
