// A stream that is longer than anything that is kept of it: all of it passes the gateway, and little of it stays in memory.
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { sampleOf } from '../agent/gateway/bodies.ts';
import { fakeProvider } from '../agent/gateway/fakeProvider.ts';
import { bench } from '../agent/gateway/gatewayBench.ts';

/** Above the longest body that is read whole here. */
const EVENTS = 4800;
const PADDING = 'x'.repeat(65_536);
const event = (choice: object): string =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, ...choice }], obfuscation: PADDING })}\n\n`;

test('300 MB pass whole, with their usage, and the process stays small', { timeout: 300_000 }, async () => {
  const word = event({ delta: { role: 'assistant', content: 'word ' } });
  const end = event({ delta: {}, finish_reason: 'stop' });
  const usage = `data: ${JSON.stringify({ id: 'c', choices: [], usage: { prompt_tokens: 7, completion_tokens: 9 } })}`;
  const provider = await fakeProvider();
  provider.script(async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let n = 0; n < EVENTS; n++)
      if (!response.write(word)) await new Promise((resolve) => response.once('drain', resolve));
    // Without the empty line behind it.
    response.end(`${end}${usage}`);
  });
  const here = await bench({ providerUrl: provider.url, dialect: 'chat' });
  try {
    const sample = sampleOf('chat');
    const got = await new Promise<{ bytes: number; most: number }>((resolve, reject) => {
      const asked = request(
        `${here.url}${sample.streamPath}`,
        {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...sample.keyHeader(here.session.key) },
        },
        (answer) => {
          let bytes = 0;
          let most = 0;
          answer.on('data', (part: Buffer) => {
            bytes += part.length;
            most = Math.max(most, process.memoryUsage().arrayBuffers);
          });
          answer.on('end', () => resolve({ bytes, most }));
          answer.on('error', reject);
        },
      );
      asked.on('error', reject);
      asked.end(JSON.stringify(sample.streamRequest));
    });
    expect(got.bytes).toBe(EVENTS * word.length + end.length + usage.length);
    expect(got.most).toBeLessThan(200 * 2 ** 20);
    await expect.poll(() => here.rows.length).toBe(1);
    expect(here.rows[0]).toMatchObject({ state: 'ok', usage: { input: 7, output: 9 } });
  } finally {
    await here.stop();
    await provider.close();
  }
});
