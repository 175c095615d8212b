// What a program asked through the gateway, asked again with the provider off: the same bytes from the record, and a clear end where the
// record does not hold what is asked.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayCall, GatewayEnd } from '../../../src/agent/gateway/gateway.ts';
import { gatewayConfigSchema } from '../../../src/agent/gateway/gatewayConfig.ts';
import { createGateway } from '../../../src/agent/gateway/httpGateway.ts';
import { createRedactor } from '../../../src/base/text/redact.ts';
import { openLocalDoorway } from '../../../src/environment/local/localFactory.ts';
import { systemClock } from '../../../src/model/limits/clock.ts';
import type { CallRecord, ModelErrorResponse } from '../../../src/model/model.ts';
import {
  type RecordedProgram,
  type RecordedWireCall,
  replayedWire,
} from '../../../src/model/offline/replayed.ts';
import { createProgramRecord, requestsOf, unpacked } from '../../../src/run/record/programRecord.ts';
import { SAMPLES, type Sample, sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, json, sse } from './fakeProvider.ts';
import { type Bench, bench } from './gatewayBench.ts';

let provider: FakeProvider;
const open: { stop(): Promise<void> }[] = [];
beforeAll(async () => {
  provider = await fakeProvider();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.stop()));
  provider.got.length = 0;
});
afterAll(() => provider.close());

type Door = Pick<Bench, 'url' | 'session'>;

async function post({ url, session }: Door, sample: Sample, body: unknown, path = sample.path) {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...sample.keyHeader(session.key) },
    body: JSON.stringify(body),
  });
  return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
}

/** Through the rows of the record and back, as a replay reads them. */
function recordedOf(calls: readonly GatewayCall[], rows: readonly CallRecord[]): RecordedWireCall[] {
  const record = createProgramRecord(createRedactor([]));
  const stored = calls.map((call) => ({
    attempt_id: 1,
    ...record.row({ call, label: null, firstMessage: 0, replyMessage: null }),
  }));
  return requestsOf(stored).map(({ row, body }, index) => ({
    ...{
      operation: row.operation,
      thread: row.thread,
      request: body,
      message: calls[index]!.reply?.message ?? null,
    },
    answer: {
      ...{ end: row.answer, status: row.status, headers: JSON.parse(row.headers) as Record<string, string> },
      bytes: unpacked(row.response),
    },
    failure: row.failure === null ? null : (JSON.parse(row.failure) as ModelErrorResponse),
    tries: rows.slice(index, index + 1),
  }));
}

async function replaying(sample: Sample, program: RecordedProgram) {
  const gateway = createGateway();
  const rows: CallRecord[] = [];
  const source = { dialect: sample.dialect, model: 'm-1', programFor: async () => program };
  const wire = replayedWire(
    { name: 'replay:r', source, clock: systemClock },
    { instanceId: 'a__a-1', epoch: 1 },
  );
  const session = gateway.open({
    attempt: 'a__a-1',
    model: { name: 'replay:r', wire, query: () => Promise.reject(new Error('no')), templateVars: () => ({}) },
    limits: { steps: 0, costDollars: 0, tokens: 0 },
    config: gatewayConfigSchema.parse({}),
    listener: () => ({ began: () => undefined, ended: (row) => void rows.push(row) }),
  });
  const door = await openLocalDoorway(session.handle);
  open.push({
    stop: async () => {
      await gateway.close();
      await door.close();
    },
  });
  return { session, url: `http://127.0.0.1:${door.port}`, rows };
}

async function recorded(sample: Sample): Promise<Bench> {
  const made = await bench({ providerUrl: provider.url, dialect: sample.dialect });
  open.push(made);
  return made;
}

/** Chat as far as it goes, with more said each time. */
const turn = (sample: Sample, ...said: string[]) => ({
  ...(sample.request as Record<string, unknown>),
  messages: said.map((content) => ({ role: 'user', content })),
});
const chat = sampleOf('chat');

async function endOf(session: Bench['session']): Promise<string> {
  const end = (await session.ended) as Extract<GatewayEnd, { kind: 'model' }>;
  return `${end.kind} ${end.failure.metadata?.kind}: ${end.failure.message}`;
}

describe.each(SAMPLES)('$dialect', (sample) => {
  test('whole and streamed answers come again to the last byte, with the costs of the record', async () => {
    const first = await recorded(sample);
    provider.script(json(sample.answer));
    const whole = await post(first, sample, sample.request);
    provider.script(sse(...sample.events));
    const streamed = await post(first, sample, sample.streamRequest, sample.streamPath);
    await expect.poll(() => first.calls.length).toBe(2);
    const heard = provider.got.length;

    const again = await replaying(sample, { calls: recordedOf(first.calls, first.rows), end: null });
    // In another order, too: the request says which answer is its own.
    expect(await post(again, sample, sample.streamRequest, sample.streamPath)).toEqual(streamed);
    expect(await post(again, sample, sample.request)).toEqual(whole);
    expect(streamed.type).toBe('text/event-stream');
    expect(provider.got).toHaveLength(heard);
    expect(again.rows.map(({ costNano }) => costNano)).toEqual(first.rows.map(({ costNano }) => costNano));
    expect(again.rows[0]!.notes).toContain('replayed: nothing was paid');
    expect(again.session.state()).toMatchObject({ steps: 2, costNano: 162_000, lastFailure: null });
  });
});

describe('a replay of a program', () => {
  async function playedOnce(...said: string[]): Promise<RecordedWireCall[]> {
    const first = await recorded(chat);
    provider.script(json(chat.answer));
    await post(first, chat, turn(chat, ...said));
    await expect.poll(() => first.calls.length).toBe(1);
    return recordedOf(first.calls, first.rows);
  }

  test('takes ids, dates, durations and temporary names for equal', async () => {
    const calls = await playedOnce(
      'on 2026-01-02T03:04:05Z in /tmp/abc, 1.2 s, 0f9e8d7c-1111-2222-3333-444455556666',
    );
    const again = await replaying(chat, { calls, end: null });
    const same = 'on 2027-11-12T13:14:15Z in /tmp/xyz, 30 s, 12345678-aaaa-bbbb-cccc-dddd55556666';
    expect((await post(again, chat, turn(chat, same))).status).toBe(200);
  });

  test('ends where a program asks for something else, and says what differed', async () => {
    const calls = await playedOnce('fix the bug', 'all 3 tests pass');
    const again = await replaying(chat, { calls, end: null });
    const { status, text } = await post(again, chat, turn(chat, 'fix the bug', '1 test fails'));
    expect(status).toBe(400);
    expect(text).toContain('messages[1].content differs at character 0');
    expect(await endOf(again.session)).toBe(
      'model unavailable: a__a-1: the program asks for what the recording does not hold: messages[1].content differs at character 0: recorded "all 3 tests pass", now "1 test fails"',
    );
    expect(again.rows).toEqual([]);
    // Nothing that it asks after that is answered.
    expect((await post(again, chat, turn(chat, 'fix the bug', 'all 3 tests pass'))).status).toBe(400);
  });

  test('answers a call as often as the record holds it, and ends at the next', async () => {
    const calls = await playedOnce('fix');
    const again = await replaying(chat, { calls: [...calls, ...calls], end: null });
    for (const status of [200, 200, 400])
      expect((await post(again, chat, turn(chat, 'fix'))).status).toBe(status);
    expect(await endOf(again.session)).toMatch(
      /holds 2 such calls of the program, and the replay asks for another/,
    );
  });

  test('ends as the recorded attempt did, where no answer tells it', async () => {
    const end: ModelErrorResponse = {
      ...{ success: false, error: 'UNKNOWN', message: 'the time was over' },
      metadata: {
        kind: 'unavailable',
        recordedEnd: { reason: 'limit_wall_time', detail: null, exitStatus: 'TimeExceeded', again: false },
      },
    };
    const again = await replaying(chat, { calls: await playedOnce('fix'), end });
    expect((await post(again, chat, turn(chat, 'fix'))).status).toBe(200);
    expect((await post(again, chat, turn(chat, 'fix', 'more'))).status).toBe(400);
    expect(await again.session.ended).toMatchObject({ kind: 'model', failure: end });
  });

  test('gives an error that the program could mend, and a stream that broke off, as they were', async () => {
    const first = await recorded(chat);
    provider.script(json({ error: { message: 'too long', code: 'context_length_exceeded' } }, 400));
    const refused = await post(first, chat, turn(chat, 'long'));
    provider.script((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chat.events[0], () => response.destroy());
    });
    await expect(post(first, chat, chat.streamRequest, chat.streamPath)).rejects.toThrow();
    await expect.poll(() => first.calls.length).toBe(2);
    const again = await replaying(chat, { calls: recordedOf(first.calls, first.rows), end: null });
    expect(await post(again, chat, turn(chat, 'long'))).toEqual(refused);
    expect(again.session.state().lastFailure).toMatchObject({ metadata: { kind: 'context' } });
    await expect(post(again, chat, chat.streamRequest, chat.streamPath)).rejects.toThrow();
  });
});
