// Two processes of one results root on one key, against a provider that refuses what is over its tokens a minute.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freshStore } from '../store/storeFixtures.ts';
import { REPO, tempDir } from '../support/cli.ts';

const TPM = 300_000;
const SECONDS = 125;

function provider() {
  const calls: { at: number; tokens: number }[] = [];
  const counts = { admitted: 0, refused: 0, calls: 0 };
  const server = createServer((request, response) => {
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => {
      const now = performance.now();
      const prompt = Math.ceil(bytes / 5);
      const completion = 50 + Math.floor(Math.random() * 300);
      const tokens = prompt + completion;
      const within = (ms: number) =>
        calls.reduce((sum, one) => sum + (one.at > now - ms ? one.tokens : 0), tokens);
      counts.calls += 1;
      if (within(60_000) > TPM || within(6_000) > TPM / 5) {
        counts.refused += 1;
        response.writeHead(429, { 'content-type': 'application/json' });
        response.end('{"error":{"message":"tokens per minute","code":"rate_limit_exceeded"}}');
        return;
      }
      calls.push({ at: now, tokens });
      counts.admitted += tokens;
      const reply = {
        ...{ id: 'x', object: 'chat.completion', model: 'fake-1' },
        choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }],
        usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: tokens },
      };
      setTimeout(
        () => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.end(JSON.stringify(reply));
        },
        200 + Math.random() * 1_000,
      );
    });
  });
  return { server, counts };
}

test('they use at least 90 % of the tokens that are allowed, and fewer than 1 % of their calls are refused', async () => {
  const { server, counts } = provider();
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const database = join(tempDir(), 'swebatch.db');
  freshStore(database).close();
  const main = join(REPO, 'tests', 'model', 'limits', 'rateCallerMain.ts');
  const callers = [1, 2].map(() => {
    const child = spawn(process.execPath, [main, database, url, String(TPM), String(SECONDS)], {
      stdio: 'inherit',
    });
    return new Promise<number | null>((ended) => child.on('close', ended));
  });
  expect(await Promise.all(callers)).toEqual([0, 0]);
  server.close();
  console.log(
    `${counts.calls} calls, ${counts.refused} refused, ${Math.round((100 * counts.admitted) / ((TPM * SECONDS) / 60))} % of the tokens`,
  );
  expect(counts.admitted).toBeGreaterThan((0.9 * TPM * SECONDS) / 60);
  expect(counts.refused / counts.calls).toBeLessThan(0.01);
}, 200_000);
