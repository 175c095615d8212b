// A body reads the same wherever the network cuts it: Node's decoder takes away two byte order marks where a cut goes through the first.
import { expect, test } from 'vitest';
import { readEvents } from '../../../src/model/http/httpTry.ts';

async function heardOf(chunks: readonly Uint8Array[]): Promise<unknown[]> {
  async function* body() {
    yield* chunks;
  }
  const found: unknown[] = [];
  for await (const event of readEvents(body(), (text) => found.push(text))) found.push(event.data);
  return found;
}

test.each([
  '\ufeffdata: "a\ufeffb"\n\ndata: "\ufeff"\n\n',
  '\ufeff\ufeff\ufeff\r\n',
  '\ufeff\ufeff{"choices": []}',
])('%j', async (text) => {
  const bytes = Buffer.from(text);
  const whole = await heardOf([bytes]);
  expect(whole.length).toBeGreaterThan(0);
  for (let at = 1; at < bytes.length; at++)
    expect(await heardOf([bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).toEqual(whole);
});
