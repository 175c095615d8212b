// Where a trial of a run over several engines is meant to go, and its image there before it takes a slot.
import { describe, expect, test } from 'vitest';
import { EnvironmentError } from '../../../../src/environment/environment.ts';
import { createEnginePool } from '../../../../src/environment/places/enginePool.ts';
import type { ImageService } from '../../../../src/environment/places/imageService.ts';
import { imagesOfEngines } from '../../../../src/environment/places/places.ts';
import type { ImagePlace } from '../../../../src/environment/places/pullStage.ts';

const lost = () => new EnvironmentError('daemon_lost', 'the engine is gone');
const config = {
  ahead: 4,
  policy: 'keep',
  disk_low: '0',
  pull: 'missing',
  memoryBytes: 4 * 2 ** 30,
} as const;
const GIB = 2 ** 30;
const nothing = { removed: [], kept: [] };

function engine(name: string, slots = 0) {
  const state = {
    ...{ alive: true, diskOpen: true, calls: [] as string[] },
    ...{ image: 'absent' as ImagePlace, memoryBytes: undefined as number | undefined },
  };
  let roomAgain = Promise.withResolvers<void>();
  const answer = async <T>(call: string, value: T): Promise<T> => {
    state.calls.push(call);
    if (!state.alive) throw lost();
    return value;
  };
  // Only what a run asks of it.
  const service = {
    stage: {
      ensure: (image: string) =>
        answer(`ensure ${image}`, {
          id: image,
          digest: `${name}@${image}`,
          architecture: 'amd64',
          warnings: [],
        }),
      isReady: (image: string) => state.calls.includes(`ensure ${image}`),
      placeOf: async () => state.image,
      status: () => ({ active: [], waiting: 0, ready: 0, paused: undefined }),
    },
    disk: {
      check: async () => ({ open: state.diskOpen, freeBytes: 1, message: '' }),
      pass: (signal: AbortSignal) =>
        state.diskOpen
          ? Promise.resolve()
          : Promise.race([
              roomAgain.promise,
              new Promise<void>((done) => signal.addEventListener('abort', () => done())),
            ]),
    },
    engine: { info: async () => ({ memoryBytes: state.memoryBytes }) },
    need: (images: readonly string[]) => answer(`need ${images.join(',')}`, undefined),
    done: (image: string) => answer(`done ${image}`, nothing),
    collect: () => answer('collect', nothing),
    freeBytes: async () => 1,
    plan: (images: readonly string[]) => answer(`plan ${images.join(',')}`, { images: [] }),
    close: () => answer('close', undefined),
  } as unknown as ImageService;
  const setDisk = (open: boolean) => {
    state.diskOpen = open;
    if (open) roomAgain.resolve();
    else roomAgain = Promise.withResolvers();
  };
  const pooled = { name, slots, ping: () => answer('ping', undefined) };
  return { name, service, state, pooled, setDisk };
}

function several(...engines: ReturnType<typeof engine>[]) {
  const pool = createEnginePool(engines.map((e) => e.pooled));
  const said: string[] = [];
  const services = new Map(engines.map((e) => [e.name, e.service]));
  const images = imagesOfEngines(services, config, pool, (message) => said.push(message));
  return { pool, images, said };
}
const { signal } = new AbortController();

describe('several engines', () => {
  test('each trial gets a place in proportion to the slots, and its image on that engine only', async () => {
    const [small, big] = [engine('small', 1), engine('big', 3)];
    const { images } = several(small, big);
    const places = [];
    for (const name of ['a', 'b', 'c', 'd']) places.push(await images.ready(name, signal));
    expect(places.map(({ place }) => place!.host)).toEqual(['small', 'big', 'big', 'big']);
    expect(small.state.calls).toEqual(['ensure a']);
    expect(big.state.calls).toEqual(['ensure b', 'ensure c', 'ensure d']);
    expect(images.has('big', 'b')).toBe(true);
    expect(images.has('small', 'b')).toBe(false);
    expect(await images.ensureOn('big')('b')).toMatchObject({ digest: 'big@b' });
  });

  test('the engine that has the image or gets it comes before the emptiest, as long as it has a slot and memory', async () => {
    const [a, b] = [engine('a', 3), engine('b', 3)];
    const { images } = several(a, b);
    const hostOf = async (image: string) => (await images.ready(image, signal)).place!.host;
    b.state.image = 'here';
    expect([await hostOf('x'), await hostOf('y')]).toEqual(['b', 'b']);
    b.state.image = 'absent';
    a.state.image = 'coming';
    expect(await hostOf('x')).toBe('a');
    a.state.image = 'absent';
    b.state.image = 'here';
    // The last slot of b, and then the slots of a, also for those whose image is on b.
    expect(await Promise.all(['x', 'y', 'z'].map(hostOf))).toEqual(['b', 'a', 'a']);
  });

  test('an engine that does not say where the image is counts as one without it, and holds up nobody', async () => {
    const [dumb, other] = [engine('dumb', 9), engine('other', 9)];
    dumb.service.stage.placeOf = () => Promise.reject(lost());
    other.state.image = 'here';
    const { images } = several(dumb, other);
    expect((await images.ready('x', signal)).place!.host).toBe('other');
  });

  test('memory that is promised to trials is not promised again while another engine has some', async () => {
    const [small, big] = [engine('small', 8), engine('big', 8)];
    small.state.memoryBytes = 8 * GIB;
    big.state.memoryBytes = 64 * GIB;
    small.state.image = 'here';
    const { images } = several(small, big);
    const places = [];
    for (const name of ['a', 'b', 'c', 'd']) places.push((await images.ready(name, signal)).place!.host);
    expect(places).toEqual(['small', 'small', 'big', 'big']);
  });

  test('an engine that dies while it gets the image is left; the image comes onto the next one', async () => {
    const [a, b] = [engine('a'), engine('b')];
    a.state.alive = false;
    const { images, pool } = several(a, b);
    expect((await images.ready('x', signal)).place!.host).toBe('b');
    expect(pool.states()).toMatchObject([{ lost: true }, { lost: false }]);
  });

  test('an image that one engine lacks is looked for on the others; missing on all of them it is missing', async () => {
    const [a, b] = [engine('a', 1), engine('b', 1)];
    const missing = () => Promise.reject(new EnvironmentError('image_missing', 'none'));
    a.service.stage.ensure = missing;
    const { images } = several(a, b);
    const found = await images.ready('x', signal);
    expect(found.place!.host).toBe('b');
    found.place!.release();
    b.service.stage.ensure = missing;
    await expect(images.ready('x', signal)).rejects.toMatchObject({ code: 'image_missing' });
    // The places are free again.
    b.service.stage.ensure = engine('b').service.stage.ensure;
    expect((await images.ready('x', signal)).place!.host).toBe('b');
  });

  test('nothing new goes to an engine that is refused, also when it alone has room on its disk; who has a place there does not start', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const { images, pool } = several(a, b);
    const early = await images.ready('w', signal);
    expect(early.place!.host).toBe('a');
    expect(await images.hasRoom('a')).toBe(true);
    pool.refuse('a');
    expect(await images.hasRoom('a')).toBe(false);
    b.setDisk(false);
    const waiting = images.ready('x', signal);
    for (let i = 0; i < 5; i++) await new Promise((turn) => setImmediate(turn));
    b.setDisk(true);
    expect((await waiting).place!.host).toBe('b');
    expect(a.state.calls).toEqual(['ensure w']);
  });

  test('an engine that has gone away and does not say what its disk has holds up no trial of the others', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const { images, pool } = several(a, b);
    a.state.alive = false;
    a.service.disk.check = () => new Promise(() => {});
    const [room, next] = await Promise.all([images.hasRoom('a'), images.ready('x', signal)]);
    expect([room, next.place!.host]).toEqual([false, 'b']);
    expect(pool.alive()).toEqual(['b']);
    // From now on nothing of it is waited for.
    expect((await images.ready('y', signal)).place!.host).toBe('b');
  });

  test('nothing new goes to an engine without room on its disk; with none left it waits', async () => {
    const [a, b] = [engine('a'), engine('b')];
    a.setDisk(false);
    const { images } = several(a, b);
    expect((await images.ready('x', signal)).place!.host).toBe('b');
    expect((await images.ready('y', signal)).place!.host).toBe('b');
    b.setDisk(false);
    let ready = false;
    const waiting = images.ready('z', signal).then((r) => {
      ready = true;
      return r;
    });
    for (let i = 0; i < 5; i++) await new Promise((turn) => setImmediate(turn));
    expect(ready).toBe(false);
    a.setDisk(true);
    expect((await waiting).place!.host).toBe('a');
  });

  test('an image that only a full engine can have waits for that one, and the others’ trials do not wait with it', async () => {
    const [full, other] = [engine('full', 1), engine('other', 9)];
    full.setDisk(false);
    const plain = other.service.stage.ensure;
    let asked = 0;
    other.service.stage.ensure = (image: string) => {
      if (image !== 'only-on-full') return plain(image);
      asked++;
      return Promise.reject(new EnvironmentError('image_missing', 'none'));
    };
    const { images } = several(full, other);
    const waiting = images.ready('only-on-full', signal);
    for (let i = 0; i < 5; i++) await new Promise((turn) => setImmediate(turn));
    expect(asked).toBe(1);
    expect((await images.ready('y', signal)).place!.host).toBe('other');
    full.setDisk(true);
    expect((await waiting).place!.host).toBe('full');
    expect(asked).toBe(1);
  });

  test('what belongs to the run is what the policy of each engine is given', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const given: unknown[] = [];
    for (const { service } of [a, b]) {
      service.done = async (_, among) => {
        given.push(among);
        return nothing;
      };
      service.collect = async (options) => {
        given.push(options?.among);
        return nothing;
      };
    }
    const { images } = several(a, b);
    images.belong(['x', 'y']);
    await images.done('x');
    await images.collect();
    expect(given).toEqual(Array(4).fill(['x', 'y']));
    expect(await images.hasRoom('a')).toBe(true);
    a.setDisk(false);
    expect([await images.hasRoom('a'), await images.hasRoom('b')]).toEqual([false, true]);
  });

  test('an engine that is gone does not keep the policy from working on the others', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const { images, pool, said } = several(a, b);
    a.state.alive = false;
    expect(await images.done('x')).toEqual(nothing);
    expect(said).toEqual(['images on a: the engine is gone']);
    pool.lose('a', 'gone');
    await images.collect();
    expect(a.state.calls).toEqual(['done x']);
    expect(b.state.calls).toEqual(['done x', 'collect']);
    expect((await images.plan(['x'], signal)).map((one) => one.host)).toEqual(['b']);
  });

  test('stopping ends the wait for room', async () => {
    const a = engine('a');
    a.setDisk(false);
    const { images } = several(a);
    const stop = new AbortController();
    const waiting = images.ready('x', stop.signal);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
  });
});

test('one engine has no places; its disk is asked before its registry', async () => {
  const only = engine('only');
  const images = imagesOfEngines(new Map([[undefined, only.service]]), config);
  only.setDisk(false);
  const waiting = images.ready('x', signal);
  await new Promise((turn) => setImmediate(turn));
  expect(only.state.calls).toEqual([]);
  only.setDisk(true);
  expect(await waiting).toEqual({ place: undefined, warnings: [] });
  expect(only.state.calls).toEqual(['ensure x']);
});
