// A reply that did not come whole says nothing about the model: it is asked for again, and ends as an outage when it never comes.
import { describe, expect, test } from 'vitest';
import type { Directive } from '../support/fakeAnswer.ts';
import { ASK, recorder, wire } from './harness.ts';

const sse = (...lines: string[]): Directive => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: lines.map((line) => `${line}\n\n`).join(''),
});
const data = (value: unknown): string => `data: ${JSON.stringify(value)}`;
const choice = (rest: Record<string, unknown>): string =>
  data({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, ...rest }] });
const json = (value: unknown): Directive => ({ status: 200, body: value });

const CUT: readonly (readonly [string, Directive, stream: boolean])[] = [
  ['a stream without an event', sse(), true],
  ['a stream of pings', sse(': ping', ': ping', ': ping'), true],
  ['a stream of its first chunk alone', sse(choice({ delta: { role: 'assistant', content: '' } })), true],
  [
    'a stream of reasoning without an end',
    sse(choice({ delta: { role: 'assistant', reasoning_content: 'hm' } }), 'data: [DONE]'),
    true,
  ],
  ['a stream of [DONE] alone', sse('data: [DONE]'), true],
  [
    'a stream that refuses and has no end',
    sse(choice({ delta: { role: 'assistant', refusal: 'I can' } })),
    true,
  ],
  [
    'an error beside a part of a message',
    json({
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '```bash\nrm -rf .\n```' },
          error: { code: 502, message: 'upstream went away' },
          finish_reason: 'stop',
        },
      ],
    }),
    false,
  ],
  [
    'a reply that ended with an error',
    json({
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '```bash\nrm -rf .\n```' },
          finish_reason: 'error',
        },
      ],
    }),
    false,
  ],
  [
    "a gateway's own page about a large request",
    {
      status: 413,
      headers: { 'content-type': 'text/html' },
      body: '<html><head><title>413 Request Entity Too Large</title></head></html>',
    },
    false,
  ],
];

describe('replies that did not come whole', () => {
  test.each(CUT)('%s is asked for again', async (_name, cut, stream) => {
    await using wired = await wire({ replies: [cut, { content: 'whole' }] }, { stream });
    const { listener, calls } = recorder();
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK, { listener });
    expect(answer).toMatchObject({ success: true, result: { content: 'whole' } });
    expect(calls.map((call) => call.state)).toEqual(['failed', 'ok']);
  });

  test.each(CUT)('%s for ever is an outage', async (_name, cut, stream) => {
    await using wired = await wire({ replies: [cut] }, { stream });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    expect(answer).toMatchObject({ success: false, metadata: { kind: 'unavailable' } });
    expect(wired.server.requests).toHaveLength(4);
  });

  test('plain JSON that is called an event stream is a reply', async () => {
    const body = JSON.stringify({
      model: 'gpt-4o',
      choices: [{ message: { role: 'assistant', content: 'plain' }, finish_reason: 'stop' }],
    });
    await using wired = await wire({ replies: [{ ...sse(), body }] }, { stream: true });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    expect(answer).toMatchObject({ success: true, result: { content: 'plain' } });
    expect(wired.server.requests).toHaveLength(1);
  });

  test.each([
    ['request_too_large', 'context'],
    ['invalid_request_error', 'rejected'],
  ])('a 413 of the API says that the history is too long only by its type: %s', async (type, kind) => {
    const body = { error: { message: 'Request too large', type } };
    await using wired = await wire({ replies: [{ status: 413, body }] });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    expect(answer).toMatchObject({ success: false, metadata: { kind } });
  });
});
