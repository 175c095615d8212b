// From the engine's events alone: did something inside end the container?
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { deathOf, diedFromWithin, type EngineEvent } from '../../../src/environment/docker/container.ts';
import { createEngineWatch } from '../../../src/environment/places/engineWatch.ts';

const event = (Action: string, ms: number, ID = 'us'): EngineEvent => ({
  Action,
  Actor: { ID },
  timeNano: 1e18 + ms * 1e6,
});
const noise = (from: number, to: number, count: number) =>
  Array.from({ length: count }, (_, i) => event('exec_die', from + ((to - from) * i) / count, 'others'));

test.each<[string, boolean, EngineEvent[]]>([
  ['nobody asked for it', true, [event('start', 0), event('exec_start: bash', 10), event('die', 5000)]],
  ['somebody asked for it', false, [event('start', 0), event('kill', 4990), event('die', 5000)]],
  ['somebody paused it', false, [event('start', 0), event('pause', 100), event('die', 5000)]],
  ['another one was killed', true, [event('start', 0), event('kill', 4990, 'others'), event('die', 5000)]],
  ['it ran out of memory before', true, [event('start', 0), event('oom', 50), event('die', 5000)]],
  [
    'it was started again after a kill',
    true,
    ['start', 'kill', 'die', 'stop', 'start', 'restart', 'die'].map((action, i) => event(action, i * 100)),
  ],
  ['its end is not known', false, [event('start', 0), event('exec_die', 4000)]],
  ['nothing is known', false, []],
  ['the memory of the engine reaches back', true, [...noise(0, 4999, 255), event('die', 5000)]],
  ['it does not reach back', false, [...noise(4900, 4999, 255), event('die', 5000)]],
])('%s: %s', (_what, expected, events) => {
  expect(diedFromWithin(events, 'us')).toBe(expected);
});

test('an end that the engine tells twenty seconds late is one from within', async () => {
  const finished = 1e12;
  const events = [event('start', -5000), event('die', 20_000)];
  const docker = {
    listContainers: async () => [{ State: 'exited' }],
    getEvents: async ({ until }: { until: number }) =>
      Readable.from(
        events.filter((one) => one.timeNano <= until * 1e9).map((one) => `${JSON.stringify(one)}\n`),
      ),
  } as unknown as Docker;
  const State = {
    Status: 'exited',
    ExitCode: 1,
    StartedAt: new Date(finished - 5000).toISOString(),
    FinishedAt: new Date(finished).toISOString(),
  };
  const container = { id: 'us', inspect: async () => ({ State }) } as unknown as Docker.Container;
  const watch = createEngineWatch({ ping: async () => undefined, limitMs: 0 });
  const death = await deathOf({ docker, container, watch, since: watch.mark() }, 0);
  expect(death).toMatchObject({ code: 'died', sub: 'killed', fromWithin: true });
});
