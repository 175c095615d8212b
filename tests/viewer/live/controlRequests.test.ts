// The page changes a run that works; nobody else does, and a run that nobody works on says so.
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createControlInbox } from '../../../src/run/control/liveControls.ts';
import { withRunLock } from '../../../src/run/control/lock.ts';
import { createEvents } from '../../../src/run/events.ts';
import { startViewer, type Viewer } from '../../../src/viewer/server.ts';
import { freshStore, planted } from '../../store/storeFixtures.ts';
import { tempDir } from '../../support/cli.ts';

let viewer: Viewer | undefined;
afterEach(() => viewer?.close());

async function bench() {
  const root = tempDir();
  const store = freshStore(join(root, 'swebatch.db'));
  const run = planted(store, { name: 'r1' });
  mkdirSync(join(root, 'page', 'assets'), { recursive: true });
  writeFileSync(join(root, 'page', 'index.html'), '<meta name="swebatch-mode" content="live">');
  writeFileSync(join(root, 'page', 'assets', 'viewer.js'), '');
  viewer = await startViewer({ results: root, port: 0, pageDir: join(root, 'page') });
  return { root, store, run };
}

const SCRIPT = { 'content-type': 'application/json', 'x-swebatch-control': '1' };
const tokenOf = ({ controlUrl }: Viewer) => new URL(controlUrl).searchParams.get('token')!;
/** Of its own page, once the printed address was opened. */
const own = () => ({
  ...{ ...SCRIPT, origin: `http://127.0.0.1:${viewer!.port}` },
  cookie: `swebatch-view-${viewer!.port}=${tokenOf(viewer!)}`,
});

function post(body: string, headers: Record<string, string>): Promise<{ status: number; body: string }> {
  const { port } = viewer!;
  return new Promise((done, failed) => {
    const call = request(
      { host: '127.0.0.1', port, path: '/api/control', method: 'POST', headers },
      (response) => {
        let answer = '';
        response.on('data', (chunk: Buffer) => {
          answer += chunk.toString();
        });
        response.on('end', () => done({ status: response.statusCode!, body: answer }));
      },
    );
    call.on('error', failed);
    call.end(body);
  });
}

const asking = (command: string, argument: string | null = null, run = 'r1') =>
  JSON.stringify({ run, command, argument });

test('a request of its page is carried out by the process that works on the run', async () => {
  const { root, store, run } = await bench();
  const headers = own();
  await withRunLock({ store, root, runName: 'r1', tell: () => {} }, async () => {
    const inbox = createControlInbox({
      ...{ store, runId: run.id, events: createEvents(), now: () => new Date() },
      onError: (error) => expect.fail(String(error)),
    });
    inbox.serve({ workers: (count) => `${count} slots` });
    const look = setInterval(inbox.look, 10);
    try {
      const answered = await post(asking('workers', '3'), headers);
      expect([answered.status, answered.body]).toEqual([200, '{"answer":"3 slots"}']);
      const refused = await post(asking('cancel', 'a__a-1'), headers);
      expect(refused.status).toBe(409);
      expect(refused.body).toContain('cannot cancel');
    } finally {
      clearInterval(look);
    }
  });
  expect(store.prepare('SELECT asked_by FROM controls').pluck().all()).toEqual([
    '127.0.0.1 (viewer)',
    '127.0.0.1 (viewer)',
  ]);
  const late = await post(asking('pause'), headers);
  expect(late.status).toBe(409);
  expect(late.body).toContain('no process works on r1');
  store.close();
});

test('other sites, other users without the token, other bodies and other runs change nothing', async () => {
  const { store } = await bench();
  const { origin, cookie } = own();
  const statusOf = async (body: string, headers: Record<string, string>) =>
    (await post(body, headers)).status;
  expect(await statusOf(asking('pause'), { ...SCRIPT, cookie })).toBe(403);
  expect(await statusOf(asking('pause'), { ...SCRIPT, cookie, origin: 'http://evil.example' })).toBe(403);
  expect(await statusOf(asking('pause'), { origin, cookie })).toBe(405);
  for (const body of ['', '{', '[]', '{"run":1}', asking('pause', null, ''), `"${'x'.repeat(50_000)}"`])
    expect(await statusOf(body, own())).toBe(400);
  for (const stranger of [{}, { cookie: 'swebatch-view=x' }, { authorization: 'Bearer x' }])
    expect(await statusOf(asking('budget', '100000'), { ...SCRIPT, origin, ...stranger })).toBe(401);
  expect((await fetch(`${viewer!.url}api/runs`)).status).toBe(200);
  expect(await statusOf(asking('halt'), own())).toBe(409);
  expect(await statusOf(asking('pause', null, 'r2'), own())).toBe(409);
  expect(store.prepare('SELECT count(*) FROM controls').pluck().get()).toBe(0);
  store.close();
});
