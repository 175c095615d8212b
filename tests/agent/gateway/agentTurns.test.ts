// Which calls count as the agent's turns, and what a program that ended had not got past.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createTurns } from '../../../src/agent/gateway/conversation.ts';
import type { CallLabel } from '../../../src/agent/gateway/gateway.ts';
import type { ModelErrorResponse } from '../../../src/model/model.ts';
import { sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, json } from './fakeProvider.ts';
import { type Bench, type BenchOptions, bench } from './gatewayBench.ts';

let provider: FakeProvider;
const open: Bench[] = [];

beforeAll(async () => {
  provider = await fakeProvider();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.stop()));
  provider.got.length = 0;
});
afterAll(() => provider.close());

async function start(more: Partial<BenchOptions> = {}): Promise<Bench> {
  const made = await bench({ providerUrl: provider.url, dialect: 'chat', ...more });
  open.push(made);
  return made;
}

const sample = sampleOf('chat');
const { tools, ...plain } = sample.request;

async function ask({ url, session }: Bench, body: Record<string, unknown>): Promise<number> {
  const answer = await fetch(`${url}${sample.path}`, {
    method: 'POST',
    headers: sample.keyHeader(session.key),
    body: JSON.stringify(body),
  });
  await answer.text();
  return answer.status;
}

describe('a program that gives its model no tools', () => {
  test('is ended at its limit of steps', async () => {
    const here = await start({ limits: { steps: 2 } });
    provider.script(json(sample.answer));
    const asked = [];
    for (const user of ['a', 'b', 'c']) asked.push(await ask(here, { ...plain, user }));
    expect(asked).toEqual([200, 200, 400]);
    expect(await here.session.ended).toMatchObject({ kind: 'limit', limit: 'steps' });
    expect(here.session.state().steps).toBe(2);
  });

  test('has the failure of its last call', async () => {
    const here = await start();
    provider.script(json(sample.answer), (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sample.events[0], () => response.destroy());
    });
    await ask(here, plain);
    expect(here.session.state().lastFailure).toBeNull();
    await expect(ask(here, { ...plain, stream: true })).rejects.toThrow();
    await expect
      .poll(() => here.session.state().lastFailure)
      .toMatchObject({ metadata: { kind: 'unavailable' } });
  });

  test('that uses the older form of functions gives it tools', async () => {
    const here = await start({ limits: { steps: 1 } });
    provider.script(json(sample.answer));
    await ask(here, { ...plain, functions: [{ name: 'bash' }] });
    expect(here.calls).toMatchObject([{ label: { kind: 'main' }, step: 1 }]);
    expect(await ask(here, { ...plain, functions: [{ name: 'sh' }] })).toBe(400);
  });
});

test('a title before the first turn and after it is no step', async () => {
  const here = await start({ limits: { steps: 1 } });
  provider.script(json(sample.answer));
  expect(await ask(here, plain)).toBe(200);
  expect(await ask(here, { ...plain, tools })).toBe(200);
  for (const user of ['b', 'c']) expect(await ask(here, { ...plain, user })).toBe(200);
  expect(here.session.state().steps).toBe(1);
});

test('an empty answer is the program’s to judge: nothing has failed', async () => {
  const here = await start({ dialect: 'messages' });
  const messages = sampleOf('messages');
  provider.script(json({ ...messages.answer, content: [] }));
  const answer = await fetch(`${here.url}${messages.path}`, {
    method: 'POST',
    headers: messages.keyHeader(here.session.key),
    body: JSON.stringify(messages.request),
  });
  expect(await answer.json()).toMatchObject({ content: [] });
  expect(here.session.state().lastFailure).toBeNull();
});

describe('the failure that counts', () => {
  const failed = (kind: 'context' | 'unavailable'): ModelErrorResponse => ({
    ...{ success: false, error: 'UNKNOWN', message: kind },
    metadata: { kind },
  });
  const SUB: CallLabel = { kind: 'subagent', id: 's' };
  type End = [index: number, label: CallLabel, failure: ModelErrorResponse | null, calledTools: boolean];
  const last = (...ends: End[]): string | null => {
    const turns = createTurns();
    for (const [index, label, failure, calledTools] of ends)
      turns.ended({ index, step: 1, label }, failure, calledTools);
    return turns.lastFailure()?.message ?? null;
  };
  const MAIN: CallLabel = { kind: 'main' };

  test.each<[string, string | null, End[]]>([
    [
      'a sub-agent that fails after the last words of the main one is nobody’s failure',
      null,
      [
        [0, MAIN, null, false],
        [1, SUB, failed('unavailable'), false],
      ],
    ],
    [
      'a sub-agent that fails while the main one waits for it is',
      'unavailable',
      [
        [0, MAIN, null, true],
        [1, SUB, failed('unavailable'), false],
      ],
    ],
    [
      'the call that began last counts, not the one that ended last',
      null,
      [
        [1, MAIN, null, false],
        [0, MAIN, failed('context'), false],
      ],
    ],
    [
      'a sub-agent that goes well does not hide the failure of the main one',
      'context',
      [
        [0, MAIN, failed('context'), false],
        [1, SUB, null, false],
      ],
    ],
    [
      'a title counts only where there is nothing else',
      null,
      [
        [0, { kind: 'title' }, failed('context'), false],
        [1, MAIN, null, false],
      ],
    ],
  ])('%s', (_name, expected, ends) => {
    expect(last(...ends)).toBe(expected);
  });
});
