// From a config to a factory: which kind is made, modules of one's own, and what is refused before anything starts.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { ASK, configOf } from './harness.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-factory-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

describe('a module of one’s own', () => {
  test('is loaded from its path and made for each attempt', async () => {
    writeFileSync(
      join(dir, 'echo.ts'),
      `let closed = 0;
       export const free: boolean = true;
       export function createModel({ config, attempt, apiKey }: any) {
         const name: string = config.model_name;
         return {
           name,
           templateVars: () => ({ model_name: name }),
           async query() {
             const content = attempt.instanceId + ' ' + apiKey;
             const message = { role: 'assistant', content };
             const result = { message, content, toolCalls: [], finishReason: 'stop', modelId: null, usage: null, costNano: 0, raw: null };
             return { success: true, message: 'ok', result };
           },
         };
       }
       export async function close() { closed += 1; }
       export const closes = () => closed;`,
    );
    const factory = await createModelFactory(configOf({ model_class: './echo.ts', model_name: 'echo' }), {
      cwd: dir,
      apiKey: 'k',
    });
    expect(factory).toMatchObject({ name: 'echo', free: true });
    const model = factory.create({ instanceId: 'a__a-1', epoch: 1 });
    expect(await model.query(ASK)).toMatchObject({ result: { content: 'a__a-1 k' } });
    await factory.close();
    const module = (await import(join(dir, 'echo.ts'))) as { closes(): number };
    expect(module.closes()).toBe(1);
  });

  test('that cannot be loaded, or exports something else, is named', async () => {
    writeFileSync(join(dir, 'empty.ts'), 'export const x = 1;');
    writeFileSync(join(dir, 'broken.ts'), 'export const = ;');
    for (const [file, text] of [
      ['./empty.ts', 'exports no createModel'],
      ['./broken.ts', 'cannot be loaded'],
      ['./missing.ts', 'cannot be loaded'],
    ] as const)
      await expect(createModelFactory(configOf({ model_class: file }), { cwd: dir })).rejects.toThrow(text);
  });
});

test('a class that is neither ours nor a path is refused with what to use', async () => {
  await expect(createModelFactory(configOf({ model_class: 'litellm' }))).rejects.toMatchObject({
    code: 'PROVIDER_NOT_SUPPORTED',
    message: expect.stringContaining('use openai'),
  });
});

test('no model at all is refused [M-57]', async () => {
  await expect(createModelFactory(configOf({ model_name: undefined }), { apiKey: 'k' })).rejects.toThrow(
    'no model given',
  );
});
