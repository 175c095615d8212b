/**
 * What ended a container: something that ran in it, or somebody outside. The engine tells of each kill and stop that it was asked for, before
 * it tells of the container's end; nothing inside can write or delete such an event.
 */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { z } from 'zod';
import { daemonAnswer } from '../places/dockerFault.ts';

const eventSchema = z.object({
  Action: z.string(),
  Actor: z.object({ ID: z.string() }),
  timeNano: z.number(),
});
export type EngineEvent = z.infer<typeof eventSchema>;

/** The engine remembers its last 256 events, whatever they are about. A kill stands milliseconds before the end that it leads to. */
const MEMORY_IS_LONG_BELOW = 200;
const LOOK_BACK_NS = 2e9;
/** The end is told a moment after it happened. */
const TOLD_LATE_MS = 5000;
const NANO_PER_MS = 1e6;

/** A stop, a restart and a removal begin with a kill. */
const BY_REQUEST: ReadonlySet<string> = new Set(['kill', 'pause']);

/**
 * `events` as the engine remembers them, up to the end of the container. False whenever they do not prove it: the end is not among them (the
 * engine was started anew since), or they do not reach back far enough to hold a kill.
 */
export function diedFromWithin(events: readonly EngineEvent[], id: string): boolean {
  const end = events.findLastIndex(({ Action, Actor }) => Actor.ID === id && Action === 'die');
  if (end < 0) return false;
  const reachesBack =
    end < MEMORY_IS_LONG_BELOW || events[0]!.timeNano < events[end]!.timeNano - LOOK_BACK_NS;
  const own = events.slice(0, end).filter(({ Actor }) => Actor.ID === id);
  const life = own.slice(own.findLastIndex(({ Action }) => Action === 'start') + 1);
  return reachesBack && !life.some(({ Action }) => BY_REQUEST.has(Action));
}

/** `finishedAt` by the engine's own clock. */
export async function endedFromWithin(docker: Docker, id: string, finishedAt: number): Promise<boolean> {
  if (!(finishedAt > 0)) return false;
  try {
    return diedFromWithin(await daemonAnswer(eventsUntilEnd(docker, id, finishedAt)), id);
  } catch {
    return false;
  }
}

async function eventsUntilEnd(docker: Docker, id: string, finishedAt: number): Promise<EngineEvent[]> {
  const until = (finishedAt + TOLD_LATE_MS) / 1000;
  const stream = (await docker.getEvents({ since: 1, until })) as Readable;
  const events: EngineEvent[] = [];
  try {
    for await (const line of createInterface({ input: stream })) {
      const event = eventSchema.safeParse(line === '' ? undefined : JSON.parse(line));
      if (!event.success) continue;
      events.push(event.data);
      const { Action, Actor, timeNano } = event.data;
      if (Action === 'die' && Actor.ID === id && timeNano >= finishedAt * NANO_PER_MS) break;
    }
  } finally {
    stream.destroy();
  }
  return events;
}
