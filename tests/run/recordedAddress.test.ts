// A run goes on where it began: the address that it recorded is asked, whatever the variables name when it is resumed.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { cli } from '../support/cli.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';
import { localRun, THREE_REPLIES } from './localRun.ts';

const REFUSED = { status: 401, body: { error: { message: 'bad key', code: 'invalid_api_key' } } };

test('resume asks the recorded address, says that a variable names another, and run refuses the change', async () => {
  const first = await startFakeModelServer({ replies: [REFUSED], by: 'history' });
  const second = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history' });
  const { out, args } = localRun({ model: { model_name: 'my-model' } });
  const at = (address: string) => ({ env: { OPENAI_BASE_URL: address } });
  expect((await cli(args, at(first.url))).stderr).toContain('authentication failed (401)');

  const nonsense = await cli(['resume', 'r', '-o', out], at('nonsense'));
  expect(nonsense.stderr).toContain('authentication failed (401)');
  expect(nonsense.stderr).not.toContain('not an http(s) URL');

  const again = await cli([...args], at(second.url));
  expect(again.code).toBe(2);
  expect(again.stderr).toMatch(/the configuration changed:\n.*model\.base_url/);

  first.setScript('default', THREE_REPLIES);
  const resumed = await cli(['resume', 'r', '-o', out], at(second.url));
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumed.stderr).toContain(
    `arm my-model goes on with ${first.url}, the address that the run recorded; $OPENAI_BASE_URL names ${second.url} now`,
  );
  expect(first.count()).toBe(2 + 3);
  expect(second.count()).toBe(0);
  const same = await cli(['resume', 'r', '-o', out], at(first.url));
  expect(same.stderr).not.toContain('the address that the run recorded');
  await first.close();
  await second.close();
});

test('a run that began at the address of its maker goes on there', async () => {
  const wanted: string[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    wanted.push(request.url ?? '');
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const elsewhere = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history' });
  const { out, args } = localRun({
    model: { model_name: 'gpt-4o', retry: { enabled: false } },
    run: { retry: { attempts: 1, backoff_s: 0 }, breaker: { probe_after_s: 0, max_probes: 1 } },
  });
  const env = {
    OPENAI_API_KEY: 'sk-test-0123456789',
    HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  };
  await cli(args, { env });
  const before = wanted.length;
  const resumed = await cli(['resume', 'r', '-o', out], {
    env: { ...env, OPENAI_BASE_URL: elsewhere.url },
  });
  expect(resumed.stderr).toContain('arm gpt-4o goes on with https://api.openai.com/v1');
  expect(wanted.length).toBeGreaterThan(before);
  expect(new Set(wanted)).toEqual(new Set(['api.openai.com:443']));
  expect(elsewhere.count()).toBe(0);
  proxy.close();
  await elsewhere.close();
});
