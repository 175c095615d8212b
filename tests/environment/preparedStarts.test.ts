// Starts begun before their slot is free: taken once by the same request, given up with nothing left.
import { describe, expect, test } from 'vitest';
import { createPreparedStarts } from '../../src/environment/container/preparedStarts.ts';
import type { EgressConnection, Environment, StartRequest } from '../../src/environment/environment.ts';

const request = (attempt: string, more: Partial<StartRequest> = {}): StartRequest => ({
  instanceId: 'a__a-1',
  image: 'i',
  owner: { run: 'r', attempt, pid: 1, pidStart: '1', bootId: 'b', host: 'h' },
  ...more,
});

/** Starts that end when the test says so, and what became of the environments. */
function starts() {
  const begun: { request: StartRequest; ready: () => void; fail: (e: Error) => void; closed: number }[] = [];
  const begin = (asked: StartRequest) =>
    new Promise<Environment>((resolve, reject) => {
      const entry = {
        request: asked,
        ready: () => resolve({ close: async () => void entry.closed++ } as unknown as Environment),
        fail: reject,
        closed: 0,
      };
      begun.push(entry);
    });
  return { begun, begin };
}
const tick = () => new Promise((done) => setImmediate(done));

describe('taking', () => {
  test('the same request gets what was begun, once', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    ahead.prepare(request('1.1'));
    ahead.prepare(request('1.1'));
    await tick();
    expect(begun.length).toBe(1);
    const taken = ahead.take(request('1.1'));
    begun[0]!.ready();
    expect(await taken).toBeDefined();
    expect(ahead.take(request('1.1'))).toBeUndefined();
    await ahead.close();
    expect(begun[0]!.closed).toBe(0);
  });

  test.each<[string, Partial<StartRequest>]>([
    ['another image', { image: 'other' }],
    ['another setup', { startupCommand: 'make' }],
    ['another base commit', { baseCommit: 'f00' }],
    ['another instance', { instanceId: 'b__b-1' }],
  ])('%s is another environment', async (_name, more) => {
    const { begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    ahead.prepare(request('1.1'));
    expect(ahead.take(request('1.1', more))).toBeUndefined();
    expect(ahead.take(request('1.2'))).toBeUndefined();
    expect(ahead.take(request('1.1'))).toBeDefined();
  });

  test('no more than the bound are open', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    for (const attempt of ['1.1', '2.1', '3.1']) ahead.prepare(request(attempt));
    await tick();
    expect(begun.map((b) => b.request.owner.attempt)).toEqual(['1.1', '2.1']);
    expect(ahead.take(request('3.1'))).toBeUndefined();
  });

  test('who takes it sees its failure, and nobody else does', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    ahead.prepare(request('1.1'));
    ahead.prepare(request('2.1'));
    await tick();
    for (const one of begun) one.fail(new Error('no start'));
    await tick();
    await expect(ahead.take(request('1.1'))).rejects.toThrow('no start');
    await ahead.close();
  });

  test('phases go on with the attempt from the one that is reached, and its abort ends the start', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    ahead.prepare(request('1.1'));
    await tick();
    begun[0]!.request.onPhase?.('seal');
    const phases: string[] = [];
    const abort = new AbortController();
    void ahead.take(request('1.1', { onPhase: (p) => phases.push(p), signal: abort.signal }));
    begun[0]!.request.onPhase?.('verify');
    expect(phases).toEqual(['seal', 'verify']);
    abort.abort(new Error('stalled'));
    expect(begun[0]!.request.signal?.reason).toEqual(new Error('stalled'));
  });
});

test('connections that ended before are told to whoever takes it, and later ones as they end', async () => {
  const { begun, begin } = starts();
  const ahead = createPreparedStarts(begin, 2);
  const named = (host: string): EgressConnection => ({
    ...{ phase: 'setup', via: 'http', host, port: 80, outcome: 'allowed', reason: null },
    ...{ bytesIn: 1, bytesOut: 1, startedAt: 0, durationMs: 1 },
  });
  ahead.prepare(request('1.1'));
  await tick();
  begun[0]!.request.onConnection?.(named('early.example.com'));
  const told: string[] = [];
  void ahead.take(request('1.1', { onConnection: ({ host }) => told.push(host) }));
  begun[0]!.request.onConnection?.(named('late.example.com'));
  expect(told).toEqual(['early.example.com', 'late.example.com']);
});

describe('giving up', () => {
  test('its signal aborts the start, and an environment that comes all the same is closed', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    const wanted = new AbortController();
    ahead.prepare(request('1.1', { signal: wanted.signal }));
    await tick();
    wanted.abort(new Error('paused'));
    expect(begun[0]!.request.signal?.aborted).toBe(true);
    expect(ahead.take(request('1.1'))).toBeUndefined();
    let closed = false;
    const closing = ahead.close().then(() => {
      closed = true;
    });
    await tick();
    expect(closed).toBe(false);
    begun[0]!.ready();
    await closing;
    expect(begun[0]!.closed).toBe(1);
  });

  test('the signal of the preparation means nothing to who took it', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    const wanted = new AbortController();
    ahead.prepare(request('1.1', { signal: wanted.signal }));
    await tick();
    const taken = ahead.take(request('1.1'));
    wanted.abort(new Error('paused'));
    begun[0]!.ready();
    await taken;
    await ahead.close();
    expect([begun[0]!.closed, begun[0]!.request.signal?.aborted]).toEqual([0, false]);
  });

  test('closing gives up what nobody took and begins nothing more', async () => {
    const { begun, begin } = starts();
    const ahead = createPreparedStarts(begin, 2);
    ahead.prepare(request('1.1'));
    await tick();
    begun[0]!.ready();
    await ahead.close();
    ahead.prepare(request('2.1'));
    await tick();
    expect([begun.length, begun[0]!.closed]).toEqual([1, 1]);
  });
});
