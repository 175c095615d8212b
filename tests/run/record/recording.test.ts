// A recording holds the model traffic of a run: read back as it was, each text once, no secret in it, and a damaged one says so.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { createRedactor } from '../../../src/base/text/redact.ts';
import type { CallRecord } from '../../../src/model/model.ts';
import type { RecordedReply } from '../../../src/model/offline/replayed.ts';
import { openRecording, type RecordedTrial, recordingOf } from '../../../src/run/record/recording.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-recording-'));
afterAll(() => rmSync(home, { recursive: true }));
let serial = 0;

const FACTS = {
  program: 'swebatch 0',
  run: 'r1',
  config_hash: 'c',
  dataset_hash: 'd',
  arms: [
    { name: 'a', model: 'm/a' },
    { name: 'b', model: 'm/b' },
  ],
};
const failed: CallRecord = {
  try: 0,
  state: 'failed',
  startedAt: 1,
  latencyMs: 2,
  statusCode: 500,
  errorCode: 'NETWORK_ERROR',
  errorMessage: 'down',
  modelAsked: 'm/a',
  modelAnswered: null,
  responseId: null,
  fingerprint: null,
  finishReason: null,
  rawUsage: null,
  usage: null,
  priceVersion: null,
  costNano: 0,
  providerCostNano: null,
  requestBytes: 7,
  notes: [],
};
const reply = (content: string, observed: string[] = []): RecordedReply => ({
  failedTries: [],
  observed: observed.map((text) => ({ role: 'user', content: text })),
  message: {
    role: 'assistant',
    content,
    tool_calls: [{ id: 'x', type: 'function', function: { name: 'bash', arguments: '{}' } }],
  },
  finishReason: 'stop',
  modelId: 'm',
  responseId: null,
  rawUsage: { prompt_tokens: 3 },
  usage: { input: 3, cacheRead: 0, cacheWrite: 0, output: 1, reasoning: 0 },
  costNano: 12,
  providerCostNano: null,
  priceVersion: 't@1',
});
const failure: RecordedReply = {
  failedTries: [failed],
  observed: [],
  failure: { success: false, error: 'TIMEOUT', message: 'late', metadata: { kind: 'unavailable' } },
};
const trial = (
  arm: string,
  instance_id: string,
  replies: readonly RecordedReply[],
  epoch = 1,
): RecordedTrial => ({
  arm,
  instance_id,
  epoch,
  replies,
});

function written(
  trials: readonly RecordedTrial[],
  redact: (text: string) => string = (text) => text,
): { path: string; text: string; bytes: number } {
  const path = join(home, `${++serial}.gz`);
  writeFileSync(path, Buffer.concat([...recordingOf(FACTS, () => trials, redact)]));
  const bytes = readFileSync(path);
  return { path, text: gunzipSync(bytes).toString('utf8'), bytes: bytes.length };
}

describe('a recording', () => {
  const long = `${'a system prompt that every trial has '.repeat(20)}\n\u{1F600}`;
  const odd = '\u0000not a reference\u0000';
  const trials = [
    trial('a', 'x-1', [reply('one', [long, odd]), failure]),
    trial('a', 'x-1', [reply('second epoch', [long])], 2),
    trial('b', 'x-1', [reply('\u00007', [long])]),
    trial('b', 'x-2', []),
  ];

  test('reads back as it was, by instance, epoch and arm', async () => {
    const { source, index } = openRecording(written(trials).path);
    expect(index).toMatchObject(FACTS);
    expect(await source().repliesFor('x-1', 1, 0)).toEqual(trials[0]!.replies);
    expect(await source().repliesFor('x-1', 2, 0)).toEqual(trials[1]!.replies);
    expect(await source('b').repliesFor('x-1', 1, 0)).toEqual(trials[2]!.replies);
    expect(await source().repliesFor('x-2', 1, 0)).toEqual([]);
    expect(await source().repliesFor('x-3', 1, 0)).toEqual([]);
    expect(await source('a').repliesFor('x-2', 1, 0)).toEqual([]);
  });

  test('of a trial that was tried again each attempt is held, and the last one again and again', async () => {
    const tried = [
      { ...trial('a', 'x-1', [reply('died', [])]), attempt: 0 },
      { ...trial('a', 'x-1', [reply('stands', [])]), attempt: 1 },
      { ...trial('b', 'x-1', [reply('other arm', [])]), attempt: 0 },
    ];
    const source = openRecording(written(tried).path).source();
    for (const [earlier, held] of [0, 1, 1].entries())
      expect(await source.repliesFor('x-1', 1, earlier)).toEqual(tried[held]!.replies);
  });

  test('any tool that reads gzip shows it; a text that comes again is there once', () => {
    const { text } = written(trials);
    expect(text.split(JSON.stringify(long).slice(1, -1)).length - 1).toBe(1);
    expect(text).toContain('swebatch-recording-1');
  });

  test('is much smaller than what it holds', () => {
    const many = Array.from({ length: 50 }, (_, i) =>
      trial('a', `x-${i}`, [reply('one', [long.repeat(40)])]),
    );
    const { bytes } = written(many);
    expect(bytes).toBeLessThan(JSON.stringify(many).length / 50);
  });

  test('holds no secret, in any form', () => {
    const secret = 'sk-canary-7Q2x/9vLw+Zk41TmR8';
    const { text } = createRedactor([{ name: 'KEY', value: secret }]);
    const encoded = Buffer.from(secret).toString('base64');
    const made = written([trial('a', 'x-1', [reply(`key ${secret}`, [`${encoded} ${long}`])])], text);
    expect(made.text).not.toContain('canary');
    expect(made.text).not.toContain(encoded.replace(/=+$/, ''));
    expect(made.text).toContain('‹redacted:KEY›');
  });

  test('that is damaged or none is refused in words', async () => {
    const { path } = written(trials);
    const bytes = readFileSync(path);
    const broken = (content: Uint8Array) => {
      const file = join(home, `${++serial}.gz`);
      writeFileSync(file, content);
      return file;
    };
    expect(() => openRecording(broken(Buffer.from('short')))).toThrow(
      'is not a recording of swebatch: it is too short',
    );
    expect(() => openRecording(broken(bytes.subarray(0, -1)))).toThrow('its end cannot be read');
    expect(() => openRecording(broken(bytes.subarray(500)))).toThrow(/is not a recording of swebatch/);
    const inside = Buffer.from(bytes);
    inside[30] = inside[30]! ^ 0xff;
    await expect(openRecording(broken(inside)).source().repliesFor('x-1', 1, 0)).rejects.toThrow(
      'the part of x-1 cannot be read',
    );
  });
});
