// Whether tests may use Docker. Where it is required (CI, the full suite) its absence is a failure, not a skip.
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import Docker from 'dockerode';

export const docker = new Docker();

let known: Promise<boolean> | undefined;

export function dockerAvailable(): Promise<boolean> {
  known ??= docker.ping().then(
    () => true,
    (error: Error) => {
      if (process.env.SWEBATCH_REQUIRE_DOCKER === '1')
        throw new Error(`Docker is required for these tests and cannot be reached: ${error.message}`);
      return false;
    },
  );
  return known;
}

// What Docker does to the containers of one run, told live: the daemon remembers no more than its last 256 events.

interface DockerEvent {
  readonly Action: string;
  readonly timeNano: number;
  readonly Actor: { readonly ID: string; readonly Attributes: Readonly<Record<string, string>> };
}

interface EventWatch {
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
