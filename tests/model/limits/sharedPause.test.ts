// A pause that a provider asks one process for holds the calls of all that use the same key and model.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { rateBooks } from '../../../src/run/record/rateBooks.ts';
import { freshStore } from '../../store/storeFixtures.ts';
import { tempDir } from '../../support/cli.ts';
import { startFakeModelServer } from '../../support/fakeModelServer.ts';
import { configOf, KEY, manualClock, recorder } from '../harness.ts';

const limited = (seconds: string) => ({
  status: 429,
  body: { error: { message: 'Rate limit reached', code: 'rate_limit_exceeded' } },
  headers: { 'retry-after': seconds },
});

/** Processes of one results root, each with its own connection to the record. */
async function processes(seconds: string, keys: readonly string[], patienceS: readonly number[]) {
  const server = await startFakeModelServer({
    scripts: { default: ['fine'], hit: [limited(seconds), 'fine'] },
  });
  const time = manualClock();
  const path = join(tempDir(), 'swebatch.db');
  const factories = await Promise.all(
    keys.map((apiKey, index) =>
      createModelFactory(
        configOf({ base_url: server.url, retry: { max_retry_after_s: patienceS[index] ?? 600 } }),
        { apiKey, clock: time.clock, rates: rateBooks(freshStore(path)) },
      ),
    ),
  );
  return {
    ...{ server, time, factories },
    say: (index: number, instance: string, seen = recorder()) =>
      factories[index]!.create({ instanceId: instance, epoch: 1 }).query(
        [{ role: 'user', content: `[[instance:${instance}]]` }],
        seen,
      ),
    async [Symbol.asyncDispose]() {
      for (const factory of factories) await factory.close();
      await server.close();
    },
  };
}

test('a process that was not refused itself starts no call before the pause of the other is over', async () => {
  await using both = await processes('30', [KEY, KEY], []);
  const { server, time } = both;
  const seen = recorder();
  const first = both.say(0, 'hit');
  await time.untilSleeping(1);
  const second = both.say(1, 'b__b-1', seen);
  await time.untilSleeping(2);
  expect(seen.phases.at(-1)).toBe('rate_wait');
  expect(both.factories[1]!.load?.()).toMatchObject({ waiting: 1, blockedMs: 30_000, rateLimited: 0 });
  await time.advance(29_999);
  expect(server.count()).toBe(1);
  await time.advance(1);
  expect((await first).success && (await second).success).toBe(true);
  expect(server.count()).toBe(3);
});

test('those that wait for their turn when the other is refused hear of it too', async () => {
  await using both = await processes('30', [KEY, KEY], []);
  const { server, time } = both;
  // It has asked the record a moment ago, and asks again after a second.
  await both.say(1, 'b__b-1');
  const first = both.say(0, 'hit');
  await time.untilSleeping(1);
  await time.advance(1_000);
  const later = both.say(1, 'b__b-1');
  await time.untilSleeping(2);
  await time.advance(28_999);
  expect(server.count()).toBe(2);
  await time.advance(1);
  expect((await first).success && (await later).success).toBe(true);
});

test('another key has its own limits, and nobody waits longer than its patience', async () => {
  await using three = await processes('300', [KEY, 'sk-test-another-one-of-23', KEY], [600, 600, 60]);
  const first = three.say(0, 'hit');
  await three.time.untilSleeping(1);
  expect((await three.say(1, 'b__b-1')).success).toBe(true);
  expect((await three.say(2, 'b__b-1')).success).toBe(true);
  await three.time.advance(300_000);
  expect((await first).success).toBe(true);
});

test('a wait of a day ends the call that was refused and stops nobody else', async () => {
  await using both = await processes('86400', [KEY, KEY], []);
  expect((await both.say(0, 'hit')).success).toBe(false);
  expect((await both.say(1, 'b__b-1')).success).toBe(true);
});
