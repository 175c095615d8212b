// What a person is told who drains an engine of a run that works.
import { expect, test } from 'vitest';
import { createEnginePool } from '../../../src/environment/places/engines/enginePool.ts';
import { type LiveControlPorts, liveControls } from '../../../src/run/control/liveControls.ts';

const ping = async () => undefined;
const handlersOf = (ports: Partial<LiveControlPorts>) =>
  liveControls({ stop: { why: null, stopStarting() {} }, ...ports } as LiveControlPorts);

test('an engine is drained once, the last one stays, and a name that nobody knows is refused', async () => {
  const pool = createEnginePool([
    { name: 'a', slots: 2, ping },
    { name: 'b', slots: 2, ping },
  ]);
  const place = await pool.choose((host) => host === 'a');
  await place.enter();
  const { drain } = handlersOf({ pool });
  expect(() => drain!('c')).toThrow('no engine "c" is in environment.hosts');
  expect(drain!('a')).toBe('a gets no new trials in this sitting; what runs on it goes on (1)');
  place.release();
  expect(drain!('a')).toBe('a is drained already; what runs on it goes on (0)');
  expect(() => drain!('b')).toThrow('b is the last engine that takes trials, so it stays');
});

test('a run that stops drains nothing, and one with a single engine has no such request', () => {
  const pool = createEnginePool([{ name: 'a', slots: 2, ping }]);
  const stop = { why: { reason: 'cancelled', message: 'Ctrl-C' } as const, stopStarting() {} };
  expect(() => handlersOf({ pool, stop }).drain!('a')).toThrow('the run is stopping already (Ctrl-C)');
  expect(handlersOf({}).drain).toBeUndefined();
});

test('an engine is removed once; the last one stays', async () => {
  const pool = createEnginePool([
    { name: 'a', slots: 2, ping },
    { name: 'b', slots: 2, ping },
  ]);
  const place = await pool.choose((host) => host === 'a');
  await place.enter();
  const { remove } = handlersOf({ pool });
  expect(() => remove!('c')).toThrow('no engine "c"');
  expect(remove!('a')).toBe('a is removed; what ran on it ends and runs again elsewhere (1)');
  expect(remove!('a')).toBe('a is removed already');
  expect(() => remove!('b')).toThrow('b is the last engine that takes trials');
});

test('an engine joins, or the answer says why it does not; with a single engine there is no such request', async () => {
  const joined: unknown[] = [];
  const { join } = handlersOf({
    join: async (engine, origin) => {
      if (engine.host === 'off') throw new Error('the engine does not answer: refused');
      joined.push([engine.host, engine.slots, origin]);
    },
  });
  expect(await join!({ host: 'c', slots: 4 })).toBe('c takes 4 trials at a time in this sitting');
  expect(joined).toEqual([['c', 4, 'person']]);
  await expect(join!({ host: 'off', slots: 0 })).rejects.toThrow(
    'off does not join: the engine does not answer: refused',
  );
  expect(handlersOf({}).join).toBeUndefined();
});
