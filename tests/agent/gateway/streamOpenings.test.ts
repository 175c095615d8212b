// Streams that fail before they have said anything, over real HTTP: such a try is made again, and the program sees the good one alone.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { DialectName } from '../../../src/model/dialects/dialects.ts';
import { sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, type Script, sse } from './fakeProvider.ts';
import { type Bench, bench } from './gatewayBench.ts';

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

async function start(dialect: DialectName): Promise<Bench> {
  const made = await bench({ providerUrl: provider.url, dialect });
  open.push(made);
  return made;
}

async function stream({ url, session }: Bench, dialect: DialectName) {
  const sample = sampleOf(dialect);
  const answer = await fetch(`${url}${sample.streamPath}`, {
    method: 'POST',
    headers: sample.keyHeader(session.key),
    body: JSON.stringify(sample.streamRequest),
  });
  return { status: answer.status, text: await answer.text() };
}

const event = (data: object, name?: string): string =>
  `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(data)}\n\n`;
const failed = (code: string, message: string): string =>
  event(
    {
      type: 'response.failed',
      response: { id: 'r1', status: 'failed', error: { code, message }, output: [] },
    },
    'response.failed',
  );

/** What comes before the first word, and the error that a provider without room sends then. */
const OPENINGS: Readonly<Record<DialectName, { opening: readonly string[]; overload: string }>> = {
  chat: {
    opening: [
      event({ id: 'c1', model: 'm-1', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }),
    ],
    overload: event({ error: { message: 'slow down', code: 'rate_limit_exceeded' } }),
  },
  responses: {
    opening: [
      sampleOf('responses').events[0]!,
      event({ type: 'response.in_progress', response: { id: 'r1' } }, 'response.in_progress'),
    ],
    overload: failed('rate_limit_exceeded', 'slow down'),
  },
  messages: {
    opening: [sampleOf('messages').events[0]!, event({ type: 'ping' }, 'ping')],
    overload: event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
  },
  gemini: {
    opening: [event({ usageMetadata: { promptTokenCount: 11 }, modelVersion: 'm-1' })],
    overload: event({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'slow down' } }),
  },
};

const broken =
  (...events: readonly string[]): Script =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(events.join(''), () => response.destroy());
  };

describe.each(Object.entries(OPENINGS) as [DialectName, (typeof OPENINGS)['chat']][])(
  '%s',
  (dialect, { opening, overload }) => {
    const { events } = sampleOf(dialect);
    test.each([
      ['an overload', sse(...opening, overload)],
      ['a connection that breaks', broken(...opening)],
    ])('%s before the first word is no answer', async (_what, bad) => {
      const here = await start(dialect);
      provider.script(bad, sse(...events));
      expect(await stream(here, dialect)).toEqual({ status: 200, text: events.join('') });
      expect(here.rows.map(({ state }) => state)).toEqual(['failed', 'ok']);
      expect(here.calls).toHaveLength(1);
      expect(here.session.state().lastFailure).toBeNull();
    });
  },
);

test('what a stream says of a conversation that is too long comes as the provider wrote it, to its end', async () => {
  const here = await start('responses');
  const said = [...OPENINGS.responses.opening, failed('context_length_exceeded', 'too long')];
  provider.script(sse(...said));
  expect(await stream(here, 'responses')).toEqual({ status: 200, text: said.join('') });
  expect(provider.got).toHaveLength(1);
  expect(here.session.state().lastFailure).toMatchObject({ metadata: { kind: 'context' } });
});

test('what a stream says of our key does not reach the program', async () => {
  const here = await start('responses');
  provider.script(sse(...OPENINGS.responses.opening, failed('invalid_api_key', 'bad key sk-123')));
  const { status, text } = await stream(here, 'responses');
  expect(status).toBe(400);
  expect(text).not.toContain('sk-123');
  expect(await here.session.ended).toMatchObject({ kind: 'model', failure: { metadata: { kind: 'auth' } } });
});

test('after the first word the answer cannot be taken back: it breaks off, and the same request is asked again', async () => {
  const here = await start('messages');
  const { events } = sampleOf('messages');
  provider.script(sse(...events.slice(0, 3), OPENINGS.messages.overload), sse(...events));
  await expect(stream(here, 'messages')).rejects.toThrow();
  expect(provider.got).toHaveLength(1);
  expect(await stream(here, 'messages')).toEqual({ status: 200, text: events.join('') });
  expect(here.session.state().lastFailure).toBeNull();
});
