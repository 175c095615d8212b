// Calls of one attempt that wait for their turn, over real HTTP: what happens to them when the attempt ends before it is theirs.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, json } from './fakeProvider.ts';
import { type Bench, type BenchOptions, bench } from './gatewayBench.ts';

const sample = sampleOf('chat');
/** A million tokens at a dollar: $1 a call. */
const DEAR = json({
  ...sample.answer,
  usage: { prompt_tokens: 1_000_000, completion_tokens: 1, total_tokens: 1_000_001 },
});

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

async function ask({ url, session }: Bench, user: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${url}${sample.path}`, {
    method: 'POST',
    headers: sample.keyHeader(session.key),
    body: JSON.stringify({ ...sample.request, user }),
  });
  return { status: answer.status, text: await answer.text() };
}

test.each([
  ['cost', { costDollars: 1 }],
  ['tokens', { tokens: 1_000_000 }],
] as const)('a limit of %s that is reached while calls queue stops those calls', async (limit, limits) => {
  const here = await start({ limits, model: { max_concurrent: 2 } });
  provider.script(DEAR);
  const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => ask(here, `${at}`)));
  expect(provider.got.length).toBeLessThanOrEqual(2);
  expect(await here.session.ended).toMatchObject({ kind: 'limit', limit });
  const refused = answers.filter(({ status }) => status === 400);
  expect(refused).toHaveLength(12 - provider.got.length);
  for (const { text } of refused) expect(text).toContain('the limit of');
  expect(here.rows).toHaveLength(provider.got.length);
});

test.each([
  ['cost', { costDollars: 0.03 }],
  ['tokens', { tokens: 3000 }],
] as const)(
  'calls of which one alone fits the limit of %s go out one after another',
  async (limit, limits) => {
    const here = await start({ limits });
    let out = 0;
    let most = 0;
    provider.script(async (response) => {
      out += 1;
      most = Math.max(most, out);
      await new Promise((resolve) => setImmediate(resolve));
      out -= 1;
      await DEAR(response, provider.got[0]!);
    });
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((user) => ask(here, user)));
    expect(most).toBe(1);
    expect(provider.got).toHaveLength(1);
    expect(await here.session.ended).toMatchObject({ kind: 'limit', limit });
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(3);
  },
);

test('calls that fit beside each other are out together', async () => {
  const here = await start({ limits: { costDollars: 1, tokens: 1_000_000 } });
  const gate = Promise.withResolvers<void>();
  provider.script(async (response) => {
    await gate.promise;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(sample.answer));
  });
  const calls = ['a', 'b', 'c'].map((user) => ask(here, user));
  await expect.poll(() => provider.got.length).toBe(3);
  gate.resolve();
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('calls that queue when the attempt ends are not made, and the one that is out is paid', async () => {
  const here = await start({ model: { max_concurrent: 1 } });
  const gate = Promise.withResolvers<void>();
  provider.script(async (response) => {
    await gate.promise;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(sample.answer));
  });
  const calls = ['a', 'b', 'c'].map((user) => ask(here, user).catch(() => null));
  await expect.poll(() => here.session.state().calls).toBe(3);
  await expect.poll(() => provider.got.length).toBe(1);
  const closing = here.session.close();
  gate.resolve();
  expect(await closing).toMatchObject({ calls: 3 });
  await Promise.all(calls);
  expect(provider.got).toHaveLength(1);
  expect(here.rows).toMatchObject([{ state: 'ok' }]);
});

test('a call that waits for its next try when the attempt ends does not hold the end up', async () => {
  const here = await start({ model: { retry: { base_delay_ms: 600_000, max_delay_ms: 600_000 } as never } });
  provider.script(json({ error: { message: 'slow down' } }, 429));
  const call = ask(here, 'a').catch(() => null);
  await expect.poll(() => here.rows.length).toBe(1);
  const before = performance.now();
  await here.session.close();
  // A tenth of what it would wait.
  expect(performance.now() - before).toBeLessThan(60_000);
  await call;
  expect(provider.got).toHaveLength(1);
});

test('money that is granted after the end of the attempt is not spent', async () => {
  const grant = Promise.withResolvers<void>();
  let asked = 0;
  const here = await start({
    wanted: () => {
      asked += 1;
      return grant.promise;
    },
  });
  provider.script(DEAR);
  const call = ask(here, 'a').catch(() => null);
  await expect.poll(() => asked).toBe(1);
  const closing = here.session.close();
  grant.resolve();
  await closing;
  await call;
  expect(provider.got).toHaveLength(0);
});
