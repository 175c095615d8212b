// Several engines: where an attempt starts, what happens when an engine dies, and who waits.
import { describe, expect, test } from 'vitest';
import { completeFactory } from '../../../../src/environment/capabilities.ts';
import {
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  type StartRequest,
} from '../../../../src/environment/environment.ts';
import {
  createEnginePool,
  type EnginePoolOptions,
  type PooledEngine,
} from '../../../../src/environment/places/enginePool.ts';
import { createEngineWatch } from '../../../../src/environment/places/engineWatch.ts';
import { createHostsFactory } from '../../../../src/environment/places/hostsFactory.ts';

const request = (more: Partial<StartRequest> = {}): StartRequest => ({
  instanceId: 'a__a-1',
  image: 'i',
  owner: { run: 'r', attempt: '1', pid: 1, pidStart: '1', bootId: 'b', host: 'h' },
  ...more,
});
const lost = () => new EnvironmentError('daemon_lost', 'the engine is gone');

type Host = PooledEngine & { factory: EnvironmentFactory };
function several(hosts: Host[], options: EnginePoolOptions = {}) {
  const pool = createEnginePool(hosts, options);
  const factories = new Map(hosts.map(({ name, factory }) => [name, factory]));
  return { pool, factories, factory: createHostsFactory({ pool, factories }) };
}

function engine(name: string, slots = 0) {
  const state = { alive: true, starts: 0, closed: 0, pings: 0 };
  const host: Host = {
    name,
    slots,
    ping: async () => {
      state.pings++;
      if (!state.alive) throw new Error('no answer');
    },
    factory: completeFactory({
      kind: 'docker',
      close: async () => void state.closed++,
      async start() {
        if (!state.alive) throw lost();
        state.starts++;
        return {
          info: { kind: 'docker', transport: 'exec', history: 'skipped', notes: [] },
          templateVars: () => ({}),
          execute: async () => {
            if (!state.alive) throw lost();
            return { exitCode: 0 };
          },
          close: async () => {},
        } as unknown as Environment;
      },
    }),
  };
  return { host, state };
}
/** With starts ahead, of which the last is remembered by its signal. */
function preparing(name: string, slots = 0) {
  const { host, state } = engine(name, slots);
  const prepared: StartRequest[] = [];
  const factory = { ...host.factory, prepare: (asked: StartRequest) => void prepared.push(asked) };
  return { host: { ...host, factory }, state, prepared };
}
const where = (environment: Environment) => environment.info.notes.at(-1);

describe('an end state that was kept', () => {
  const WORK = 'swebatch.internal/work:abc';
  const keeping = (name: string, images: string[]) => {
    const { host, state } = engine(name);
    const factory: EnvironmentFactory = {
      ...host.factory,
      holdsWork: async (image) => images.includes(image),
      discardWork: async (image) =>
        void images.splice(0, images.length, ...images.filter((one) => one !== image)),
    };
    return { host: { ...host, factory }, state };
  };

  test('starts on the engine that has it, and nobody is asked about other images', async () => {
    const [a, b] = [keeping('a', ['i']), keeping('b', [WORK])];
    const { factory } = several([a.host, b.host]);
    for (let i = 0; i < 4; i++) await factory.start(request({ image: WORK }));
    expect([a.state.starts, b.state.starts]).toEqual([0, 4]);
    for (let i = 0; i < 4; i++) await factory.start(request());
    expect(a.state.starts).toBe(4);
  });

  test('is not held to be gone where an engine does not say whether it has it', async () => {
    const [a, b] = [keeping('a', ['i']), keeping('b', [WORK])];
    const answers = b.host.factory.holdsWork;
    let tried = 0;
    const holdsWork = async (image: string) => {
      tried += 1;
      if (tried === 1) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
      return answers(image);
    };
    const silent = { ...b.host, factory: { ...b.host.factory, holdsWork } };
    const { factory } = several([a.host, silent]);
    await expect(factory.start(request({ image: WORK }))).rejects.toMatchObject({
      code: 'daemon_lost',
      evidence: { engine: 'b' },
    });
    await factory.start(request({ image: WORK }));
    expect([a.state.starts, b.state.starts]).toEqual([0, 1]);
  });

  test('is removed also from engines on which nothing was started yet', async () => {
    const images = [WORK];
    const { host } = keeping('a', images);
    const pool = createEnginePool([host]);
    const made: string[] = [];
    const factories = {
      get: (name: string) => {
        made.push(name);
        return host.factory;
      },
      values: () => new Map<string, EnvironmentFactory>().values(),
    };
    await createHostsFactory({ pool, factories }).discardWork(WORK);
    expect(images).toEqual([]);
    expect(made).toEqual(['a']);
  });
});

describe('placing', () => {
  test('goes to the engine with most room in proportion to its slots', async () => {
    const [small, big] = [engine('small', 1), engine('big', 3)];
    const { factory } = several([small.host, big.host]);
    for (let i = 0; i < 4; i++) await factory.start(request());
    expect([small.state.starts, big.state.starts]).toEqual([1, 3]);
  });

  test('when all are full a start waits for a place, and ends with its signal', async () => {
    const only = engine('only', 1);
    const { factory, pool } = several([only.host]);
    const first = await factory.start(request());
    const second = factory.start(request());
    const stop = new AbortController();
    const third = factory.start(request({ signal: stop.signal }));
    stop.abort(new Error('stopped'));
    await expect(third).rejects.toThrow('stopped');
    expect(only.state.starts).toBe(1);
    await first.close();
    await first.close();
    expect(where(await second)).toBe('engine: only');
    expect(pool.states()).toEqual([{ name: 'only', active: 1, lost: false }]);
  });
});

describe('places', () => {
  test('a start with a place goes there, although another engine has more room', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const { factory, pool } = several([a.host, b.host]);
    const place = await pool.choose((host) => host === 'b');
    await factory.start(request());
    expect(where(await factory.start(request({ place })))).toBe('engine: b');
  });

  test('factories of one pool share the slots of an engine, and a released place is free for the next', async () => {
    const only = engine('only', 1);
    const { factory, pool, factories } = several([only.host]);
    const other = createHostsFactory({ pool, factories });
    const first = await factory.start(request());
    const second = other.start(request());
    await new Promise((turn) => setImmediate(turn));
    expect(only.state.starts).toBe(1);
    await first.close();
    await second;
    expect(only.state.starts).toBe(2);
  });

  test('who waits for an engine that is lost meanwhile is sent to another one', async () => {
    const [a, b] = [engine('a', 1), engine('b')];
    const { factory, pool } = several([a.host, b.host]);
    await factory.start(request({ place: await pool.choose((host) => host === 'a') }));
    const waiting = factory.start(request({ place: await pool.choose((host) => host === 'a') }));
    await new Promise((turn) => setImmediate(turn));
    pool.lose('a', 'no answer');
    expect(where(await waiting)).toBe('engine: b');
  });
});

describe('an engine that is refused', () => {
  test('gets nothing new, what runs goes on, and who waits for it goes elsewhere', async () => {
    const [a, b] = [engine('a', 1), engine('b', 4)];
    const { factory, pool } = several([a.host, b.host]);
    const onA = () => pool.choose((host) => host === 'a');
    const running = await factory.start(request({ place: await onA() }));
    const waiting = factory.start(request({ place: await onA() }));
    await new Promise((turn) => setImmediate(turn));
    pool.refuse('a');
    expect(where(await waiting)).toBe('engine: b');
    expect((await running.execute('true')).exitCode).toBe(0);
    await running.close();
    // It has a free slot now, and is wanted; still it gets nothing.
    expect((await onA()).host).toBe('b');
    expect([a.state.starts, b.state.starts]).toEqual([1, 1]);
    expect(pool.alive()).toEqual(['b']);
  });

  test('and answers does not end the wait for the others', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const { pool } = several([a.host, b.host]);
    pool.refuse('a');
    b.state.alive = false;
    pool.lose('b', 'gone');
    await expect(pool.choose()).rejects.toThrow('none of the engines answers (b)');
    await expect(pool.anyAnswers()).rejects.toThrow('none of the engines answers (b)');
    b.state.alive = true;
    expect((await pool.choose()).host).toBe('b');
    pool.refuse('b');
    await expect(pool.choose()).rejects.toThrow('no engine takes trials: all are refused');
  });
});

describe('starting ahead', () => {
  test('happens on the engine that has the image', async () => {
    const [a, b] = [preparing('a'), preparing('b')];
    const { factory, pool } = several([a.host, b.host]);
    factory.prepare!(request({ place: await pool.choose((host) => host === 'b') }));
    expect([a.prepared.length, b.prepared.length]).toEqual([0, 1]);
    factory.prepare!(request());
    expect([a.prepared.length, b.prepared.length]).toEqual([0, 1]);
  });

  test('not on an engine that is full', async () => {
    const only = preparing('only', 1);
    const { factory, pool } = several([only.host]);
    const first = await factory.start(request());
    const place = await pool.choose();
    factory.prepare!(request({ place }));
    expect(only.prepared).toEqual([]);
    await first.close();
    factory.prepare!(request({ place }));
    expect(only.prepared.length).toBe(1);
  });

  test('what was begun on an engine that is lost before the start is given up', async () => {
    const [a, b] = [preparing('a'), preparing('b')];
    const { factory, pool } = several([a.host, b.host]);
    const asked = request({ place: await pool.choose((host) => host === 'a') });
    const run = new AbortController();
    factory.prepare!({ ...asked, signal: run.signal });
    pool.lose('a', 'no answer');
    expect(a.prepared[0]!.signal!.aborted).toBe(false);
    expect(where(await factory.start(asked))).toBe('engine: b');
    expect(a.prepared[0]!.signal!.aborted).toBe(true);
  });

  test('and so is what its request gives up', async () => {
    const a = preparing('a');
    const { factory, pool } = several([a.host]);
    const run = new AbortController();
    factory.prepare!(request({ place: await pool.choose(), signal: run.signal }));
    run.abort();
    expect(a.prepared[0]!.signal!.aborted).toBe(true);
  });
});

describe('an engine that dies', () => {
  test('what had not begun starts elsewhere without anybody noticing', async () => {
    const [dead, alive] = [engine('dead'), engine('alive')];
    dead.state.alive = false;
    const changes: string[] = [];
    const { factory } = several([dead.host, alive.host], {
      onChange: (host, state) => changes.push(`${host} ${state}`),
    });
    expect(where(await factory.start(request()))).toBe('engine: alive');
    expect(where(await factory.start(request()))).toBe('engine: alive');
    expect(changes).toEqual(['dead lost']);
  });

  test('a running attempt gets its error; the next start goes elsewhere, and back once the engine answers', async () => {
    let now = 0;
    const [a, b] = [engine('a'), engine('b')];
    const { factory } = several([a.host, b.host], { now: () => now, retryMs: 1000 });
    const environment = await factory.start(request());
    a.state.alive = false;
    await expect(environment.execute('true')).rejects.toMatchObject({ code: 'daemon_lost' });
    await environment.close();
    expect(where(await factory.start(request()))).toBe('engine: b');
    a.state.alive = true;
    now = 999;
    expect(where(await factory.start(request()))).toBe('engine: b');
    now = 1000;
    expect(where(await factory.start(request()))).toBe('engine: a');
  });

  test('with none left the error names all of them, and a later start asks again at once', async () => {
    const [a, b] = [engine('a'), engine('b')];
    a.state.alive = b.state.alive = false;
    const { factory } = several([a.host, b.host]);
    await expect(factory.start(request())).rejects.toThrow(/none of the engines answers \(a, b\)/);
    b.state.alive = true;
    expect(where(await factory.start(request()))).toBe('engine: b');
  });

  test('with a watch over all of them nothing fails while none answers: starts wait, also one whose engine dies under it', async () => {
    const [a, b] = [engine('a'), engine('b')];
    const { pool, factories } = several([a.host, b.host]);
    const looks: (() => void)[] = [];
    const watch = createEngineWatch({
      ping: pool.anyAnswers,
      limitMs: 0,
      sleep: () => new Promise((resolve) => looks.push(resolve)),
    });
    const away: string[] = [];
    watch.follow({ away: (reason) => void away.push(reason) });
    const factory = createHostsFactory({ pool, factories, watch });
    const running = await factory.start(request());
    a.state.alive = b.state.alive = false;
    await expect(running.execute('ls')).rejects.toThrow('the engine is gone');
    const waiting = Promise.all([factory.start(request()), factory.start(request())]);
    await expect.poll(() => looks.length).toBe(1);
    expect(away).toEqual(['none of the engines answers (a, b)']);
    b.state.alive = true;
    looks.shift()!();
    expect((await waiting).map(where)).toEqual(['engine: b', 'engine: b']);
    // Who gives up does not wait on.
    b.state.alive = false;
    const abort = new AbortController();
    const given = factory.start(request({ signal: abort.signal }));
    await expect.poll(() => looks.length).toBe(1);
    abort.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    watch.close();
  });

  test('a container that fails for its own reasons says nothing about its engine', async () => {
    const a = engine('a');
    const failing: Host = {
      ...a.host,
      factory: {
        ...a.host.factory,
        start: () => Promise.reject(new EnvironmentError('start_failed', 'bad cwd')),
      },
    };
    const { factory, pool } = several([failing]);
    await expect(factory.start(request())).rejects.toThrow('bad cwd');
    expect(pool.states()).toEqual([{ name: 'a', active: 0, lost: false }]);
  });
});

describe('an engine that does not answer for a minute', () => {
  const silentFor = async (seconds: number) => {
    let now = 0;
    const [a, b] = [engine('a'), engine('b')];
    const { factory, pool } = several([a.host, b.host], { now: () => now });
    const [onA, onB] = [await factory.start(request()), await factory.start(request())];
    a.state.alive = false;
    for (; now <= seconds * 1000; now += 5000) await pool.look();
    a.state.alive = true;
    return { a, pool, onA, onB, factory, later: () => (now += 5000) };
  };

  test('twelve seconds end nothing, and cost no attempt', async () => {
    const { pool, onA } = await silentFor(12);
    expect((await onA.execute('true')).exitCode).toBe(0);
    await pool.look();
    expect(pool.states().map(({ lost }) => lost)).toEqual([false, false]);
  });

  test('a minute ends what runs there, with the engine and since when it was silent; nothing else ends [T-35]', async () => {
    const { onA, onB, pool, factory } = await silentFor(60);
    expect(pool.states().map(({ lost }) => lost)).toEqual([true, false]);
    await expect(onA.execute('true')).rejects.toMatchObject({
      code: 'died',
      sub: 'daemon_lost',
      message: 'the engine a has not answered for 60 s',
      evidence: { engine: 'a', silent_since: expect.stringMatching(/^\d{4}-.*Z$/) },
    });
    expect((await onB.execute('true')).exitCode).toBe(0);
    expect(where(await factory.start(request()))).toBe('engine: b');
  });

  test('when it is back it takes trials, and who follows hears of it', async () => {
    const { pool, factory, later } = await silentFor(60);
    const back: string[] = [];
    pool.follow({ back: (host) => void back.push(host) });
    later();
    await pool.look();
    expect(back).toEqual(['a']);
    const again = await factory.start(request());
    expect(where(again)).toBe('engine: a');
    expect((await again.execute('true')).exitCode).toBe(0);
  });

  test('a start that hangs on it goes elsewhere, and what it still brings is closed', async () => {
    let now = 0;
    const [a, b] = [engine('a'), engine('b')];
    const started = Promise.withResolvers<Environment>();
    let closed = 0;
    const hanging = { ...a.host, factory: { ...a.host.factory, start: () => started.promise } };
    const { factory, pool } = several([hanging, b.host], { now: () => now });
    const starting = factory.start(request());
    a.state.alive = false;
    for (; now <= 60_000; now += 5000) await pool.look();
    expect(where(await starting)).toBe('engine: b');
    started.resolve({ close: async () => void closed++ } as unknown as Environment);
    await expect.poll(() => closed).toBe(1);
  });
});

describe('a start whose engine is lost under it', () => {
  test('does not wait for a place while it holds a slot of the run: who has the place may wait for that slot', async () => {
    const [a, b] = [engine('a', 1), engine('b', 1)];
    const { factory, pool } = several([a.host, b.host]);
    const taken = await pool.choose((host) => host === 'b');
    await taken.enter();
    const place = await pool.choose((host) => host === 'a');
    await place.enter();
    a.state.alive = false;
    await expect(factory.start(request({ place }))).rejects.toMatchObject({ code: 'daemon_lost' });
    taken.release();
    const free = await pool.choose();
    expect(free.host).toBe('b');
    free.release();
    const again = await pool.choose((host) => host === 'b');
    pool.refuse('a');
    await again.enter();
    expect(where(await factory.start(request({ place: again })))).toBe('engine: b');
  });
});

describe('an engine that is lost for good, and is back', () => {
  test('ends its attempts and their containers after a minute, and takes trials again', async () => {
    const closed: string[] = [];
    const [a, b] = [engine('a'), engine('b')];
    const closing = {
      ...a.host,
      factory: {
        ...a.host.factory,
        start: async (asked: StartRequest) => ({
          ...(await a.host.factory.start(asked)),
          execute: () => new Promise<never>(() => {}),
          close: async () => void closed.push(asked.owner.attempt),
        }),
      },
    };
    let now = 0;
    const { factory, pool } = several([closing, b.host], { now: () => now });
    const told: string[] = [];
    pool.follow({
      leased: (host, attempt) => void told.push(`${attempt} on ${host}`),
      released: (host, attempt, how) => void told.push(`${attempt} off ${host}: ${how}`),
      back: (host) => void told.push(`${host} back`),
    });
    const running = await factory.start(request());
    const command = running.execute('sleep 1000');
    a.state.alive = false;
    for (; now <= 60_000; now += 5000) await pool.look();
    await expect(command).rejects.toMatchObject({
      sub: 'daemon_lost',
      message: 'the engine a has not answered for 60 s',
      evidence: { engine: 'a' },
    });
    expect(closed).toEqual(['1']);
    await running.close();
    expect(where(await factory.start(request()))).toBe('engine: b');
    a.state.alive = true;
    await pool.look();
    expect(told).toEqual(['1 on a', '1 off a: lost', '1 on b', 'a back']);
    expect(where(await factory.start(request()))).toBe('engine: a');
  });

  test('who waits for a full engine goes to one that is back, when that is looked at', async () => {
    const [a, b] = [engine('a', 1), engine('b', 1)];
    b.state.alive = false;
    const { factory, pool } = several([a.host, b.host], { retryMs: 0 });
    pool.lose('b', 'gone');
    await factory.start(request());
    const waiting = factory.start(request());
    await new Promise((turn) => setImmediate(turn));
    b.state.alive = true;
    await pool.look();
    pool.balance();
    expect(where(await waiting)).toBe('engine: b');
  });
});

test('close closes every factory', async () => {
  const [a, b] = [engine('a'), engine('b')];
  await several([a.host, b.host]).factory.close();
  expect([a.state.closed, b.state.closed]).toEqual([1, 1]);
});
