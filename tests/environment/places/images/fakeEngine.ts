// An engine in memory whose pulls the test lets through one by one, and a clock that only the test moves.

import type { ImageEngine, LocalImage, PullRequest } from '../../../../src/environment/places/imageEngine.ts';
import {
  createImageJobs,
  type ImageEvent,
  type ImageJobsOptions,
} from '../../../../src/environment/places/imageJobs.ts';
import { imagesConfigSchema } from '../../../../src/environment/places/imagesConfig.ts';
import { type PullClock, pullThrottle } from '../../../../src/environment/places/pullImage.ts';

interface FakePull {
  readonly name: string;
  readonly request: PullRequest;
  succeed(architecture?: string): Promise<void>;
  fail(message: string): Promise<void>;
}

export const settled = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) await Promise.resolve();
};

export function fakeEngine() {
  const local = new Map<string, LocalImage>();
  const pulls: FakePull[] = [];
  const short = (name: string) => name.replace(/^docker\.io\/(library\/)?/, '');
  const image = (name: string, architecture = 'amd64'): LocalImage => ({
    id: `sha256:${name}`,
    tags: [name],
    digests: [`${short(name).replace(/:[^/]*$/, '')}@sha256:${'0'.repeat(64)}`],
    os: 'linux',
    architecture,
    user: '',
    size: 1000,
    layers: [],
  });
  const containersOf = new Map<string, number>();
  const engine: ImageEngine = {
    answers: async () => undefined,
    info: async () => ({ id: 'ENGINE', os: 'linux', architecture: 'amd64', rootDir: '/nowhere' }),
    inspect: async (name) => local.get(short(name)),
    list: async () =>
      [...local.values()].map(({ id, tags, digests, size }) => ({
        id,
        tags,
        digests,
        size,
        containers: containersOf.get(id) ?? 0,
        sealedFrom: undefined,
      })),
    pull(request) {
      const separator = request.tagOrDigest.includes(':') ? '@' : ':';
      const name = short(`${request.registry}/${request.repository}${separator}${request.tagOrDigest}`);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
      pulls.push({
        name,
        request,
        succeed: (architecture) => {
          local.set(name, image(name, architecture));
          resolve();
          return settled();
        },
        fail: (message) => {
          reject(new Error(message));
          return settled();
        },
      });
      return promise;
    },
    tag: async (source, name) => {
      const found = [...local.values()].find((entry) => entry.id === source)!;
      local.set(short(name), found);
    },
    remove: async (name) => ({ removed: local.delete(short(name)) }),
  };
  return { engine, local, pulls, image, containersOf };
}

function fakeClock(): PullClock & { advance(ms: number): Promise<void>; readonly sleeping: number } {
  let now = 1_000_000;
  let sleepers: { at: number; wake: () => void }[] = [];
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((wake) => {
        sleepers.push({ at: now + ms, wake });
        signal.addEventListener('abort', () => wake(), { once: true });
      }),
    get sleeping() {
      return sleepers.length;
    },
    async advance(ms) {
      now += ms;
      const due = sleepers.filter((sleeper) => sleeper.at <= now);
      sleepers = sleepers.filter((sleeper) => sleeper.at > now);
      for (const sleeper of due) sleeper.wake();
      await settled();
    },
  };
}

export function fakeJobs(config: Record<string, unknown> = {}, more: Partial<ImageJobsOptions> = {}) {
  const fake = fakeEngine();
  const clock = fakeClock();
  const events: ImageEvent[] = [];
  const waits: string[] = [];
  const parsed = imagesConfigSchema.parse(config);
  const jobs = createImageJobs({
    engine: fake.engine,
    config: parsed,
    clock,
    pull: 'missing',
    stallMs: 0,
    throttle: pullThrottle({ pulls: parsed.pulls_per_window, windowMs: parsed.window_seconds * 1000 }),
    loginOf: async () => undefined,
    askReset: async () => undefined,
    onEvent: (event) => events.push(event),
    ...more,
  });
  const ensure = (image: string, signal?: AbortSignal) =>
    jobs.ensure(image, { signal, waits: () => waits.push(image) });
  return { ...fake, clock, events, waits, jobs, ensure };
}
