// Over real HTTP, with waits that a clock of the test takes at once: the time in which a provider keeps the agent waiting uses up none of its own.
import { expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { autoClock, configOf, KEY } from '../model/harness.ts';
import type { Directive } from '../support/fakeAnswer.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';
import { config, fakeEnvironment, result, submitted } from './fakes.ts';

const bash = (command: string): string => `THOUGHT\n\n\`\`\`bash\n${command}\n\`\`\``;

async function runUnder(limitS: number, before: readonly Directive[], model: object = {}) {
  await using server = Object.assign(
    await startFakeModelServer({ replies: [bash('ls'), ...before, bash('submit')] }),
    { [Symbol.asyncDispose]: async () => server.close() },
  );
  const { clock, slept } = autoClock();
  const factory = await createModelFactory(configOf({ base_url: server.url, ...model }), {
    apiKey: KEY,
    clock,
  });
  const agent = createAgent({
    instanceId: 'i',
    model: factory.create({ instanceId: 'i', epoch: 1 }),
    environment: fakeEnvironment([result('ok'), submitted('p')]),
    config: config({ wall_time_limit_seconds: limitS }),
    now: clock.now,
  });
  const ended = await agent.run('t');
  await factory.close();
  return { ended, requests: server.count(), waitedMs: Math.max(...slept) };
}

test('a Retry-After that is longer than the wall-clock limit', async () => {
  const limited: Directive = { status: 429, headers: { 'retry-after': '11' } };
  const { ended, requests, waitedMs } = await runUnder(10, [limited]);
  expect(waitedMs).toBeGreaterThanOrEqual(11_000);
  expect(ended).toMatchObject({ exitStatus: 'Submitted', steps: 2 });
  expect(requests).toBe(3);
});

test('nine rate limits in a row, and streams that break off: one step, no end', async () => {
  const limited: Directive[] = Array(9).fill({ status: 429 });
  const { ended, requests } = await runUnder(30, [...limited, { cutAfter: 1 }, { cutAfter: 2 }], {
    stream: true,
    retry: { base_delay_ms: 1, max_delay_ms: 5 },
  });
  expect(ended).toMatchObject({ exitStatus: 'Submitted', steps: 2 });
  expect(requests).toBe(13);
});
