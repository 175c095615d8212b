// What counts of a stream at its end.
import { expect, test } from 'vitest';
import { readEvents } from '../../../src/model/http/httpTry.ts';

async function dataOf(...pieces: readonly string[]): Promise<unknown[]> {
  async function* body() {
    for (const piece of pieces) yield Buffer.from(piece);
  }
  const found: unknown[] = [];
  for await (const { data } of readEvents(body(), () => {})) found.push(data);
  return found;
}

test.each(['', '\n', '\r\n', '\r', '\n\n'])('the last event counts where %j is behind it', async (end) => {
  expect(await dataOf('data: {"a":1}\n\n', `data: {"b":2}${end}`)).toEqual([{ a: 1 }, { b: 2 }]);
});

test('one that broke off in its middle never came, and the end of OpenAI ends all', async () => {
  expect(await dataOf('data: {"a":1}\n\n', 'data: {"b":')).toEqual([{ a: 1 }]);
  expect(await dataOf('data: {"a":1}\n\ndata: [DONE]\n\n', 'data: {"b":2}')).toEqual([{ a: 1 }]);
});
