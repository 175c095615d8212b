// What Docker does to the containers of one run, told live: the daemon remembers no more than its last 256 events.
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { docker } from './docker.ts';

interface DockerEvent {
  readonly Action: string;
  readonly Actor: { readonly ID: string; readonly Attributes: Readonly<Record<string, string>> };
}

export interface EventWatch {
  readonly seen: readonly DockerEvent[];
  /** Resolves once what was seen satisfies the condition. */
  until(done: (seen: readonly DockerEvent[]) => boolean): Promise<void>;
  close(): void;
}

export async function watchDocker(filters: Readonly<Record<string, string[]>>): Promise<EventWatch> {
  const stream = (await docker.getEvents({ filters })) as Readable;
  const seen: DockerEvent[] = [];
  const watchers = new Set<() => void>();
  // By lines: an event may come in two chunks.
  createInterface({ input: stream }).on('line', (line) => {
    if (line === '') return;
    seen.push(JSON.parse(line) as DockerEvent);
    for (const watcher of watchers) watcher();
  });
  return {
    seen,
    until: (done) =>
      new Promise((resolve) => {
        const look = () => {
          if (!done(seen)) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    close: () => void stream.destroy(),
  };
}
