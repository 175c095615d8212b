// One factory for every driver: what is started again, what is started ahead, and how containers are removed. The driver here is played.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createContainerFactory,
  type Driver,
  type FactoryParts,
  type OpenedContainer,
} from '../../src/environment/container/containerFactory.ts';
import {
  type EgressConnection,
  type Environment,
  EnvironmentError,
  isLoss,
  type StartRequest,
} from '../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import type { Removed } from '../../src/environment/places/leftovers.ts';

/** Timers pass at once. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.setTimerTickMode('nextTimerAsync');
});
afterEach(() => void vi.useRealTimers());

const request = (attempt = '1.1', more: Partial<StartRequest> = {}): StartRequest => ({
  ...{ instanceId: 'a__a-1', image: 'i', owner: currentOwner('r', attempt) },
  ...more,
});
const config = environmentConfigSchema.parse({ cwd: '/', seal_history: false });
const own = { transport: 'exec', execute: async () => ({}), left: async () => undefined, close: () => {} };

/** Ready as soon as it is open. */
const openedAs = (remove: () => Promise<void>) =>
  ({
    container: { id: 'c', death: async () => undefined, remove },
    channels: { own },
    ready: async () => config,
    check: async () => ({}),
    within: (environment: Environment) => environment,
  }) as unknown as OpenedContainer;

function played(
  open: Driver['open'],
  { ping = async () => {}, ...options }: Partial<Parameters<typeof createContainerFactory>[0]> = {},
) {
  let given: FactoryParts | undefined;
  const factory = createContainerFactory({
    ...{ kind: 'fake', ping, outageMs: 60_000, ...options },
    driver(parts) {
      given = parts;
      return {
        ...{ open, cutOff: isLoss, close: async () => undefined },
        ...{ holdsWork: async () => false, systemChanges: async () => undefined },
        discardWork: async () => undefined,
      };
    },
  });
  return { factory, parts: given! };
}

describe('a start', () => {
  const lost = () => new EnvironmentError('daemon_lost', 'no answer');
  const taken = () => new EnvironmentError('start_failed', 'the name is taken', { again: true });
  const missing = () => new EnvironmentError('image_missing', 'no such image');

  /** Fails in these ways, the last again and again; the engine is away for `away` looks after each. */
  function failing(ways: readonly (() => EnvironmentError)[], { away = 0, outageMs = 60_000 } = {}) {
    const seen = { opened: 0, looks: 0 };
    const open = async () => {
      seen.looks = 0;
      throw ways[Math.min(seen.opened++, ways.length - 1)]!();
    };
    const ping = async () => {
      if (seen.looks++ < away) throw new Error('refused');
    };
    return { seen, ...played(open, { ping, outageMs }) };
  }

  test('that was cut off is made again once the engine is back; what an image lacks is told at once', async () => {
    const { seen, factory } = failing([lost, taken, missing], { away: 3 });
    await expect(factory.start(request())).rejects.toMatchObject({ code: 'image_missing' });
    expect(seen.opened).toBe(3);
    expect(factory.awayMs()).toBeGreaterThan(0);
    await factory.close();
    await expect(factory.start(request())).rejects.toThrow('the environment factory is closed');
  });

  test('is tried five times, and not again while the engine stays away', async () => {
    const { seen, factory } = failing([taken]);
    await expect(factory.start(request())).rejects.toThrow('the name is taken');
    expect(seen.opened).toBe(5);
    const gone = failing([lost], { away: Number.POSITIVE_INFINITY, outageMs: 1 });
    await expect(gone.factory.start(request())).rejects.toThrow('it was waited for');
    expect(gone.seen.opened).toBe(1);
  });

  test('that nobody wants any more is not made again', async () => {
    const abort = new AbortController();
    const { seen, factory } = failing([
      () => {
        abort.abort(new Error('stopped'));
        return lost();
      },
    ]);
    await expect(factory.start(request('1.1', { signal: abort.signal }))).rejects.toThrow('no answer');
    expect(seen.opened).toBe(1);
  });
});

describe('a start ahead of its slot', () => {
  /** Starts end when the test says so. */
  function waiting() {
    const begun: {
      request: StartRequest;
      ready: () => void;
      fail: (error: Error) => void;
      closed: number;
    }[] = [];
    const { factory } = played(
      (asked) =>
        new Promise((resolve, reject) => {
          const entry = {
            request: asked,
            ready: () => resolve(openedAs(async () => void entry.closed++)),
            fail: reject,
            closed: 0,
          };
          begun.push(entry);
        }),
      { maxPrepared: 2 },
    );
    return { begun, factory };
  }
  const tick = () => new Promise((done) => setImmediate(done));

  test('is taken once, by the same request', async () => {
    const { begun, factory } = waiting();
    factory.prepare(request());
    factory.prepare(request());
    await tick();
    const first = factory.start(request());
    begun[0]!.ready();
    expect((await first).info.containerId).toBe('c');
    void factory.start(request());
    await tick();
    expect(begun).toHaveLength(2);
    expect(begun[0]!.closed).toBe(0);
  });

  test.each<[string, Partial<StartRequest>]>([
    ['another image', { image: 'other' }],
    ['another setup', { startupCommand: 'make' }],
    ['another base commit', { baseCommit: 'f00' }],
    ['another instance', { instanceId: 'b__b-1' }],
    ['another attempt', { owner: currentOwner('r', '1.2') }],
  ])('is none for %s', async (_name, more) => {
    const { begun, factory } = waiting();
    factory.prepare(request());
    void factory.start(request('1.1', more));
    await tick();
    expect(begun).toHaveLength(2);
  });

  test('is begun for no more than the bound, and its failure is told to who takes it alone', async () => {
    const { begun, factory } = waiting();
    for (const attempt of ['1.1', '2.1', '3.1']) factory.prepare(request(attempt));
    await tick();
    expect(begun.map((one) => one.request.owner.attempt)).toEqual(['1.1', '2.1']);
    for (const one of begun) one.fail(new Error('no start'));
    await tick();
    await expect(factory.start(request())).rejects.toThrow('no start');
    await factory.close();
  });

  test('tells its phase and connections to who takes it, whose abort ends it', async () => {
    const { begun, factory } = waiting();
    const named = (host: string): EgressConnection => ({
      ...{ phase: 'setup', via: 'http', host, port: 80, outcome: 'allowed', reason: null },
      ...{ bytesIn: 1, bytesOut: 1, startedAt: 0, durationMs: 1 },
    });
    factory.prepare(request());
    await tick();
    const { request: ahead } = begun[0]!;
    ahead.onPhase?.('seal');
    ahead.onConnection?.(named('early.example.com'));
    const told: string[] = [];
    const abort = new AbortController();
    const onConnection = ({ host }: EgressConnection) => told.push(host);
    const onPhase = (phase: string) => told.push(phase);
    void factory
      .start(request('1.1', { onPhase, onConnection, signal: abort.signal }))
      .catch(() => undefined);
    ahead.onPhase?.('verify');
    ahead.onConnection?.(named('late.example.com'));
    expect(told).toEqual(['early.example.com', 'seal', 'verify', 'late.example.com']);
    abort.abort(new Error('stalled'));
    expect(ahead.signal?.reason).toEqual(new Error('stalled'));
  });

  test('is given up with its signal, unless it was taken, and removed where it comes all the same', async () => {
    const { begun, factory } = waiting();
    const wanted = new AbortController();
    for (const attempt of ['1.1', '2.1']) factory.prepare(request(attempt, { signal: wanted.signal }));
    await tick();
    const taken = factory.start(request('1.1'));
    wanted.abort(new Error('paused'));
    expect(begun.map((one) => one.request.signal?.aborted)).toEqual([false, true]);
    let closed = false;
    const closing = factory.close().then(() => {
      closed = true;
    });
    await tick();
    expect(closed).toBe(false);
    for (const one of begun) one.ready();
    await Promise.all([taken, closing]);
    expect(begun.map((one) => one.closed)).toEqual([0, 1]);
  });

  test('is given up at the end, after which none is begun', async () => {
    const { begun, factory } = waiting();
    factory.prepare(request());
    await tick();
    begun[0]!.ready();
    await factory.close();
    factory.prepare(request('2.1'));
    await tick();
    expect([begun.length, begun[0]!.closed]).toEqual([1, 1]);
  });
});

describe('a container that is not removed', () => {
  const NOT_NOW = 'pod a could not be removed; it is tried again';
  /** `answers`: of the engine, one after the other; `never` is none, and the last comes again and again. */
  function removing(answers: readonly (Removed | 'never')[], graceMs = 10_000) {
    const said: string[] = [];
    let asked = 0;
    const { factory, parts } = played(() => Promise.reject(new Error('nothing is started')), {
      graceMs,
      onWarning: (text) => said.push(text),
    });
    const remove = async () => {
      const how = answers[Math.min(asked++, answers.length - 1)]!;
      return how === 'never' ? new Promise<never>(() => {}) : how;
    };
    const discard = () =>
      parts.discard({ name: 'pod a', remove, byHand: 'kubectl delete pod a', freedBy: 'kill b' });
    return { said, asked: () => asked, discard, end: factory.close };
  }

  test('is said with its name, tried again, and said when it is gone; one that is removed is not spoken of', async () => {
    const { discard, end, said, asked } = removing(['refused', 'gone']);
    await discard();
    await end();
    expect(asked()).toBe(2);
    expect(said).toEqual([NOT_NOW, 'pod a is removed now']);
    await discard();
    expect(said).toHaveLength(2);
  });

  test('is tried for as long as it takes while the run works', async () => {
    const { discard, said, asked } = removing([...Array<Removed>(50).fill('refused'), 'gone']);
    await discard();
    await vi.waitFor(() => expect(said.at(-1)).toBe('pod a is removed now'));
    expect(asked()).toBe(51);
  });

  test.each<[string, (Removed | 'never')[]]>([
    ['refused', ['refused']],
    ['without an answer', ['refused', 'never']],
    ['never answered', ['never']],
  ])('is named at the end, which waits no longer than the grace: %s', async (_how, answers) => {
    const { discard, end, said } = removing(answers, 50);
    await discard();
    await end();
    expect(said.at(-1)).toBe(
      'pod a is still there: kubectl delete pod a removes it, or "swebatch clean" once this run has ended',
    );
  });

  test('for which the engine does not answer holds up nobody, and what to do is told once', async () => {
    const { discard, end, said } = removing(['unanswered', 'unanswered', 'gone']);
    await discard();
    await end();
    expect(said).toEqual([
      'pod a could not be removed: its engine does not answer for it; kill b; it is tried again',
      'pod a is removed now',
    ]);
  });
});
