// `--model scripted:PATH`: where scripts are found, their two forms, latency, and what is said when something is wrong.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { ASK, autoClock, configOf, recorder } from './harness.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-scripted-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

function write(name: string, script: unknown): string {
  const file = join(dir, name);
  writeFileSync(file, typeof script === 'string' ? script : JSON.stringify(script));
  return file;
}

async function open(path: string, settings: Record<string, unknown> = {}) {
  const time = autoClock();
  const factory = await createModelFactory(configOf({ model_name: `scripted:${path}`, ...settings }), {
    clock: time.clock,
    cwd: dir,
  });
  return {
    factory,
    slept: time.slept,
    model: (instanceId = 'a__a-1') => factory.create({ instanceId, epoch: 1 }),
  };
}

const CALL = { function: { name: 'bash', arguments: { command: 'ls' } } };

describe('a file', () => {
  test('serves every instance from its start, and repeats its last reply', async () => {
    write('plain.json', [
      'one',
      { content: 'two', finish_reason: 'length', usage: { prompt_tokens: 7, completion_tokens: 2 } },
    ]);
    const { factory, model } = await open('plain.json');
    expect(factory).toMatchObject({ name: 'scripted:plain.json', free: true });
    for (const id of ['a__a-1', 'b__b-2']) {
      const one = model(id);
      expect(await one.query(ASK)).toMatchObject({
        success: true,
        result: { content: 'one', finishReason: 'stop', usage: null },
      });
      for (let again = 0; again < 3; again += 1)
        expect(await one.query(ASK)).toMatchObject({
          success: true,
          result: { content: 'two', finishReason: 'length', usage: { input: 7, output: 2 }, costNano: 0 },
        });
    }
  });

  test('answers with the model asked for, as a server does, unless the script names another', async () => {
    write('names.json', ['one', { content: 'two', model: 'other-1' }]);
    const { model } = await open('names.json');
    const seen = recorder();
    const one = model();
    await one.query(ASK, seen);
    await one.query(ASK, seen);
    expect(seen.calls.map((call) => call.modelAnswered)).toEqual(['scripted:names.json', 'other-1']);
  });

  test('tool calls may leave out their ids and give arguments as an object; a repeated call has a new id', async () => {
    write('tools.json', { replies: [{ content: null, tool_calls: [CALL, CALL] }] });
    const model = (await open('tools.json')).model();
    const ids = [];
    for (let n = 0; n < 2; n += 1) {
      const response = await model.query(ASK);
      if (!response.success) throw new Error(response.message);
      expect(response.result).toMatchObject({ finishReason: 'tool_calls', content: '' });
      expect(response.result.toolCalls[0]!.function.arguments).toBe('{"command":"ls"}');
      expect(response.result.message.tool_calls).toEqual(response.result.toolCalls);
      ids.push(...response.result.toolCalls.map((call) => call.id));
    }
    expect(new Set(ids).size).toBe(4);
  });

  test('each call is told to the ledger, at a cost of 0', async () => {
    write('ledger.json', ['x', '', { content: null, refusal: 'no' }]);
    const { model, factory } = await open('ledger.json');
    const seen = recorder();
    const one = model();
    const responses = [await one.query(ASK, seen), await one.query(ASK, seen), await one.query(ASK, seen)];
    expect(seen.began).toHaveLength(3);
    expect(seen.calls).toMatchObject([
      { state: 'ok', costNano: 0, statusCode: null, modelAsked: 'scripted:ledger.json' },
      { state: 'failed', costNano: 0, errorCode: 'INVALID_RESPONSE' },
      { state: 'failed', costNano: 0, errorMessage: 'no' },
    ]);
    expect(responses.map((r) => (r.success ? 'reply' : r.metadata?.kind))).toEqual([
      'reply',
      'empty',
      'refusal',
    ]);
    await factory.close();
  });

  test('latency_ms of the script is waited, and the configured one overrides it', async () => {
    write('slow.json', { latency_ms: 250, replies: ['x'] });
    const script = await open('slow.json');
    await script.model().query(ASK);
    expect(script.slept).toEqual([250]);
    const config = await open('slow.json', { latency_ms: 40 });
    await config.model().query(ASK);
    expect(config.slept).toEqual([40]);
    const none = await open('slow.json', { latency_ms: 0 });
    await none.model().query(ASK);
    expect(none.slept).toEqual([]);
  });

  test('an abort during the latency rejects and closes the row', async () => {
    write('wait.json', { latency_ms: 1e9, replies: ['x'] });
    const factory = await createModelFactory(configOf({ model_name: 'scripted:wait.json' }), { cwd: dir });
    const stop = new AbortController();
    const seen = recorder();
    const pending = factory
      .create({ instanceId: 'a', epoch: 1 })
      .query(ASK, { listener: seen.listener, signal: stop.signal });
    stop.abort();
    await expect(pending).rejects.toMatchObject({ name: 'AbortError' });
    expect(seen.calls).toMatchObject([{ state: 'aborted', costNano: 0 }]);
  });
});

describe('a folder', () => {
  test('has a file for each instance', async () => {
    write('a__a-1.json', ['for a']);
    write('b__b-2.json', ['for b']);
    const { model } = await open('.');
    expect(await model('b__b-2').query(ASK)).toMatchObject({ result: { content: 'for b' } });
    expect(await model('a__a-1').query(ASK)).toMatchObject({ result: { content: 'for a' } });
  });

  test('an instance without a file is told with the path, and costs nothing', async () => {
    const { model } = await open('.');
    const seen = recorder();
    const response = await model('c__c-3').query(ASK, seen);
    expect(response).toMatchObject({
      success: false,
      error: 'PROVIDER_NOT_CONFIGURED',
      metadata: { kind: 'config' },
    });
    expect(response.message).toContain(join(dir, 'c__c-3.json'));
    expect(seen.calls).toEqual([]);
  });

  test.each(['../secret', 'a/b', '..', '.hidden', '', 'a\0b', '/etc/passwd'])(
    'an id %j never becomes a path',
    async (id) => {
      const { model } = await open('.');
      const response = await model(id).query(ASK);
      expect(response).toMatchObject({ success: false, error: 'PROVIDER_NOT_CONFIGURED' });
      expect(response.message).toContain('cannot name a file');
    },
  );
});

describe('mistakes are found at load and named', () => {
  test.each<[string, unknown, string]>([
    ['not JSON', '{', 'is not JSON'],
    ['no replies', [], 'is not a script of replies'],
    ['an unknown field', [{ content: 'x', tool_call: [] }], 'tool_call'],
    ['a wrong latency', { latency_ms: -1, replies: ['x'] }, 'latency_ms'],
    ['an object without replies', { content: 'x' }, 'replies'],
  ])('%s', async (_name, script, text) => {
    write('bad.json', script);
    await expect(open('bad.json')).rejects.toThrow(text);
    await expect(open('bad.json')).rejects.toMatchObject({ name: 'ModelConfigError' });
  });

  test('a path that does not exist', async () => {
    await expect(open('nowhere')).rejects.toThrow(join(dir, 'nowhere'));
  });

  test('a bad file in a folder concerns its instance only', async () => {
    write('bad__bad-1.json', '{"replies": 5}');
    write('a__a-1.json', ['fine']);
    const { model } = await open('.');
    expect(await model('bad__bad-1').query(ASK)).toMatchObject({
      success: false,
      error: 'PROVIDER_NOT_CONFIGURED',
    });
    expect((await model('a__a-1').query(ASK)).success).toBe(true);
  });
});
